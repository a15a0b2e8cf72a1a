"""The store of this process: the same answers as the smallest store there is, from any thread."""

import random
from typing import Any

import numpy
import pytest

from chatkeep import UnsupportedOperationError, open_repository
from chatkeep.conformance.scripted import ListStore
from chatkeep.conformance.support import in_threads
from chatkeep.vectors import AsyncVectorMemory, InProcessVectorStore, VectorItem, VectorMemory


def unit(chance: random.Random) -> list[float]:
    vector = numpy.array([chance.gauss(0, 1) for _ in range(8)])
    return [float(number) for number in vector / numpy.linalg.norm(vector)]


@pytest.mark.parametrize("seed", range(20))
def test_it_answers_as_the_smallest_store_does(seed: int) -> None:
    chance = random.Random(seed)
    stores: list[Any] = [InProcessVectorStore(), ListStore()]
    for position in range(1, 80):
        owner, name = chance.choice("ab"), chance.choice("xyz")
        items = [VectorItem(position, unit(chance) if chance.random() < 0.9 else None)]
        for store in stores:
            store.add(owner, name, items)
        if chance.random() < 0.1:
            positions = None if chance.random() < 0.3 else [chance.randrange(1, position + 1)]
            for store in stores:
                store.remove(owner, name, positions)
        asked, where = unit(chance), chance.choice([None, "x", "y"])
        ours, theirs = (store.search(owner, where, asked, 5, 0.1) for store in stores)
        assert [(hit.conversation_id, hit.position) for hit in ours] == [
            (hit.conversation_id, hit.position) for hit in theirs
        ]
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in theirs], abs=1e-5)


def test_threads_share_it() -> None:
    store = InProcessVectorStore()
    chance = random.Random(1)
    vectors = [unit(chance) for _ in range(200)]

    def work(number: int) -> None:
        for step in range(50):
            store.add("", "thread", [VectorItem(number * 50 + step + 1, vectors[number * 50 + step])])
            assert store.search("", None, vectors[0], 3, -1.0)

    in_threads(4, work)
    assert len(store) == 200
    assert store.last_position("", "thread") == 200


def test_what_cannot_be_is_refused_when_it_is_made() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0]] * len(texts)

    with open_repository("inprocess:") as repository:
        store = InProcessVectorStore()
        with pytest.raises(UnsupportedOperationError, match="InProcessVectorStore"):
            VectorMemory(repository, embed, model="m")
        for wrong in (
            lambda: VectorMemory(repository, None, model="m", store=store),  # type: ignore[arg-type]
            lambda: VectorMemory(repository, embed, model=None, store=store),  # type: ignore[arg-type]
            lambda: VectorMemory(repository, embed, model="m", store=InProcessVectorStore),  # type: ignore[arg-type]
            lambda: VectorMemory(repository, embed, model="m", store=store, roles="user"),
            lambda: AsyncVectorMemory(repository, embed, model="m", store=store),  # type: ignore[arg-type]
        ):
            with pytest.raises(TypeError):
                wrong()
        for wrong in (
            lambda: VectorMemory(repository, embed, model="", store=store),
            lambda: VectorMemory(repository, embed, model="m", store=store, batch_size=0),
            lambda: VectorMemory(repository, embed, model="m", store=store, distance="numpy"),
        ):
            with pytest.raises(ValueError):
                wrong()
        memory = VectorMemory(repository, embed, model="m", store=store)
        for options in ({"top_k": 0}, {"top_k": 1001}, {"threshold": 1.1}, {"threshold": float("nan")}):
            with pytest.raises(ValueError):
                memory.search("thread", "x", **options)
        for options in ({"top_k": "5"}, {"threshold": "1"}, {"exclude": "id"}):
            with pytest.raises(TypeError):
                memory.search("thread", "x", **options)
