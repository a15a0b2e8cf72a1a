"""Vectors in the tables of an engine: a message that goes takes its vector with it, whoever deletes it."""

import datetime as dt
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, Message, SchemaError, open_repository
from chatkeep.conformance.scripted import WordEmbedding
from chatkeep.conformance.support import said
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, status, validate
from chatkeep.vectors import VectorMemory
from tests.conformance.postgresql_harness import PostgresqlHarness
from tests.conformance.relational_harness import RelationalHarness
from tests.conformance.sqlite_harness import SqliteHarness
from tests.migrations.places import target_of

COUNT = "SELECT count(*) FROM chat_message_vector"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(SqliteHarness, marks=pytest.mark.sqlite),
        pytest.param(PostgresqlHarness, marks=pytest.mark.postgresql),
    ],
)
def harness(request: pytest.FixtureRequest) -> Iterator[RelationalHarness]:
    made = request.param()
    if "vector_options" in made.cannot:
        pytest.skip(made.cannot["vector_options"])
    yield made
    made.close()


@pytest.fixture
def url(harness: RelationalHarness) -> Iterator[str]:
    made = harness.fresh_url()
    yield made
    harness.drop(made)


def rows(harness: RelationalHarness, url: str) -> int:
    return int(harness.query(url, COUNT)[0][0])


def by_hand(harness: RelationalHarness, url: str) -> None:
    harness.query(url, "DELETE FROM chat_message")


DELETIONS: dict[str, tuple[int, Callable[[RelationalHarness, str, ChatMemoryRepository], object]]] = {
    "a message": (3, lambda h, u, r: r.delete_messages("one", [r.find_by_conversation_id("one")[0].id])),
    "a conversation": (0, lambda h, u, r: r.delete_by_conversation_id("one")),
    "a replacement": (0, lambda h, u, r: r.save_all("one", said(2, "new"))),
    "idle": (0, lambda h, u, r: (time.sleep(0.01), r.purge_idle(dt.timedelta(microseconds=1)))),
    "by hand": (0, lambda h, u, r: by_hand(h, u)),
}


@pytest.mark.parametrize("how", DELETIONS)
def test_a_message_that_goes_takes_its_vector_with_it(harness: RelationalHarness, url: str, how: str) -> None:
    left, delete = DELETIONS[how]
    with open_repository(url) as repository:
        repository.append("one", said(4))
        memory = VectorMemory(repository, WordEmbedding(), model="words", **harness.vector_options())
        VectorMemory(repository, WordEmbedding(), model="other", **harness.vector_options()).index("one")
        assert memory.index("one") == 4
        assert rows(harness, url) == 8
        delete(harness, url, repository)
        assert rows(harness, url) == 2 * left


def test_a_purge_of_what_expired_takes_the_vectors_too(harness: RelationalHarness, url: str) -> None:
    with open_repository(url) as repository:
        repository.append("one", said(4), ttl=dt.timedelta(milliseconds=300))
        repository.append("one", said(1, "stays"))
        VectorMemory(repository, WordEmbedding(), model="words", **harness.vector_options()).index("one")
        time.sleep(0.4)
        assert rows(harness, url) == 5
        repository.purge_expired()
        assert rows(harness, url) == 1


def test_messages_without_text_are_looked_at_once(harness: RelationalHarness, url: str) -> None:
    with open_repository(url) as repository:
        embed = WordEmbedding()
        memory = VectorMemory(repository, embed, model="words", **harness.vector_options())
        repository.append("one", [Message.tool("x", call_id="c")])
        assert memory.index("one") == 0
        repository.append("one", [Message.user("dog"), Message.tool("x", call_id="c"), Message.user(" ")])
        assert memory.index("one") == 1
        assert rows(harness, url) == 4
        assert embed.batches == [["dog"]]


def test_the_vector_tables_are_optional(harness: RelationalHarness) -> None:
    """Without them everything else works; a server says which command makes them, an embedded engine makes them."""
    url = harness.empty_url()
    try:
        open_repository(url, schema="migrate").close()
        with open_repository(url, schema="validate") as repository:
            repository.append("one", said(2))
            memory = VectorMemory(repository, WordEmbedding(), model="words", **harness.vector_options())
            with pytest.raises(SchemaError, match="chatkeep migrate --vectors --url"):
                memory.search("one", "dog")
            with target_of(url, vectors=True) as target:
                assert [step.state for step in status(target)] == [State.PENDING]
                assert migrate(target).applied == ("V0001__message_vectors.sql",)
                assert migrate(target).applied == ()
                validate(target)
            assert len(memory.search("one", "line")) == 2
        with open_repository(url, schema="validate"):
            pass  # the history of the other tables is as it was
    finally:
        harness.drop(url)


def test_two_workers_index_the_same_conversation(harness: RelationalHarness, url: str) -> None:
    from chatkeep.conformance.support import in_threads

    with open_repository(url) as repository:
        repository.append("one", said(200))
        embed: Any = WordEmbedding()
        memories = [
            VectorMemory(repository, embed, model="words", batch_size=10, **harness.vector_options()) for _ in range(4)
        ]
        in_threads(4, lambda number: memories[number].index("one"))
        assert rows(harness, url) == 200
