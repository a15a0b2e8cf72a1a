"""C20 and C21 for vectors: what is gone is not found by meaning either, and no owner finds another's messages.

The same rules hold for vectors in a store elsewhere, on every backend, and for those in the backend's own tables.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, EmbeddingError, Message, ToolCall
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.scripted import ListStore, WordEmbedding, vector_memory
from chatkeep.conformance.support import new_id, said
from chatkeep.vectors import VectorMemory

SAID = ("my dog is called Rex", "what a lovely name", "the weather is fine today", "shall we walk the dog now")


def conversation() -> list[Message]:
    """Four messages on two matters."""
    return [Message(("user", "assistant")[n % 2], Message.user(text).parts) for n, text in enumerate(SAID)]


def found(memory: VectorMemory, conversation_id: str | None, query: str, **options: Any) -> list[str]:
    """The texts that a search gives, the most similar first."""
    return [hit.message.text for hit in memory.search(conversation_id, query, **options)]


class VectorRules:
    """A subclass says where the vectors lie."""

    def options(self, harness: Harness) -> dict[str, Any]:
        """What VectorMemory is given for that."""
        raise NotImplementedError

    def test_the_most_similar_messages_are_found(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """As they are stored, best first, with similarity, position and conversation; `top_k` and `threshold` hold."""
        messages = [*conversation(), Message.assistant(tool_calls=[ToolCall("c", "dog", "{}")]), Message.user("")]
        repository.append(conversation_id, messages)
        memory = vector_memory(repository, WordEmbedding(), **self.options(harness))
        hits = memory.search(conversation_id, "my dog is called Rex")
        assert hits[0].message == messages[0]
        assert hits[0].score == pytest.approx(1, abs=1e-5)
        assert hits[0].conversation_id == conversation_id
        positions = [entry.position for entry in repository.history(conversation_id).items]
        assert hits[0].position == positions[0]
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert len(hits) == 4
        assert found(memory, conversation_id, "dog", top_k=2) == [SAID[0], SAID[3]]
        assert found(memory, conversation_id, "dog", threshold=0.4) == [SAID[0], SAID[3]]
        assert found(memory, conversation_id, "dog", threshold=1.0) == []
        assert found(memory, conversation_id, "dog", exclude=[messages[0].id], top_k=1) == [SAID[3]]
        assert found(memory, conversation_id, " ") == []

    def test_each_message_is_embedded_once(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """In batches, with the question, in order, whoever wrote it; also by another memory, which finds them done."""
        embed = WordEmbedding()
        options = self.options(harness)
        memory = vector_memory(repository, embed, batch_size=3, **options)
        repository.append(conversation_id, conversation())
        memory.search(conversation_id, "dog")
        assert embed.batches == [["dog", SAID[0], SAID[1]], [SAID[2], SAID[3]]]
        embed.batches.clear()
        repository.append(conversation_id, Message.user("a new one"))
        assert memory.index(conversation_id) == 1
        assert vector_memory(repository, embed, **options).index(conversation_id) == 0
        assert embed.batches == [["a new one"]]

    def test_a_failed_embedding_leaves_no_gap(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Of what it gave nothing is stored where it isn't usable, and the next search makes up for it."""
        embed = WordEmbedding()
        options = self.options(harness)
        repository.append(conversation_id, conversation())
        bad: list[Any] = [[[1.0]], [[1.0, 2.0], [1.0]], [["a"]] * 5, None, [[float("nan")]] * 5, [[]] * 5]
        for given in bad:
            with pytest.raises(EmbeddingError):
                vector_memory(repository, lambda texts, given=given: given, **options).search(conversation_id, "dog")
        assert found(vector_memory(repository, embed, **options), conversation_id, "dog", top_k=1) == [SAID[0]]

    def test_what_is_deleted_is_not_found(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A message, a replaced list, a conversation; and its id starts empty."""
        memory = vector_memory(repository, WordEmbedding(), **self.options(harness))
        messages = conversation()
        repository.append(conversation_id, messages)
        assert found(memory, conversation_id, "dog", threshold=0.3) == [SAID[0], SAID[3]]
        repository.delete_messages(conversation_id, [messages[0].id])
        assert found(memory, conversation_id, "dog", threshold=0.3) == [SAID[3]]
        repository.save_all(conversation_id, messages[:1])
        assert found(memory, conversation_id, "dog", threshold=0.1) == [SAID[0]]
        repository.delete_by_conversation_id(conversation_id)
        assert found(memory, conversation_id, "dog") == []
        repository.append(conversation_id, messages[1])
        assert found(memory, conversation_id, "dog") == [SAID[1]]
        assert found(memory, conversation_id, SAID[0], threshold=0.99) == []

    def test_what_another_handle_deletes_is_not_found(
        self, harness: Harness, opened: Opened, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A repository that knows nothing of vectors, as another program's does."""
        memory = vector_memory(repository, WordEmbedding(), **self.options(harness))
        repository.append(conversation_id, conversation())
        assert len(found(memory, conversation_id, "dog")) == 4
        opened().delete_by_conversation_id(conversation_id)
        assert found(memory, conversation_id, "dog") == []

    @needs("ttl")
    def test_what_has_expired_is_not_found(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """At once, without a purge."""
        memory = vector_memory(repository, WordEmbedding(), **self.options(harness))
        life = max(harness.shortest_ttl, dt.timedelta(milliseconds=700))
        repository.append(conversation_id, Message.user("the secret dog"), ttl=life)
        repository.append(conversation_id, Message.user("a plain dog"))
        assert len(found(memory, conversation_id, "dog")) == 2
        time.sleep(life.total_seconds() + 0.2)
        assert found(memory, conversation_id, "dog") == ["a plain dog"]

    def test_owners_and_conversations_do_not_meet(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """One store for all: a search stays in its conversation, or with None in those of its owner."""
        options = self.options(harness)
        other, embed = new_id(), WordEmbedding()
        one, two = repository.for_owner(new_id("owner")), repository.for_owner(new_id("owner"))
        for owner, name in ((one, "one"), (two, "two")):
            for where in (conversation_id, other):
                owner.append(where, Message.user(f"dog of {name} in {where}"))
        memories = [vector_memory(owner, embed, **options) for owner in (one, two)]
        for memory, name in zip(memories, ("one", "two"), strict=True):
            for where in (conversation_id, other):
                assert found(memory, where, "dog") == [f"dog of {name} in {where}"]
        for memory, name in zip(memories, ("one", "two"), strict=True):
            texts = {f"dog of {name} in {where}" for where in (conversation_id, other)}
            assert set(found(memory, None, "dog")) == texts
        one.delete_by_conversation_id(conversation_id)
        assert found(memories[0], None, "dog") == [f"dog of one in {other}"]
        assert len(found(memories[1], None, "dog")) == 2

    def test_forgotten_vectors_are_made_anew(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Deleting vectors deletes no message."""
        embed = WordEmbedding()
        memory = vector_memory(repository, embed, **self.options(harness))
        repository.append(conversation_id, conversation())
        assert memory.index(conversation_id) == 4
        memory.delete_by_conversation_id(conversation_id)
        assert memory.index(conversation_id) == 4
        assert len(repository.find_by_conversation_id(conversation_id)) == 4

    @needs("context")
    def test_what_left_the_context_is_not_found(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A memory that was cleared has forgotten, although the log is whole."""
        from chatkeep.conformance.scripted import Talk

        memory = vector_memory(repository, WordEmbedding(), **self.options(harness))
        repository.append(conversation_id, conversation())
        assert len(found(memory, conversation_id, "dog")) == 4
        form: Any = "async" if hasattr(repository, "asynchronous") else "sync"
        talk = Talk(repository, form, conversation_id)
        cleared = talk.memory.clear(conversation_id)
        if form == "async":
            from chatkeep.conformance.blocking import wait_for

            wait_for(cleared)
        assert found(memory, conversation_id, "dog") == []
        assert len(repository.find_by_conversation_id(conversation_id)) == 4

    def test_a_long_backlog_is_indexed_in_rounds(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A search gives 256 messages their vectors at most, `index` gives them to all."""
        memory = vector_memory(repository, WordEmbedding(), **self.options(harness))
        repository.append(conversation_id, [*said(300), Message.user("needle")])
        assert found(memory, conversation_id, "needle", threshold=0.9) == []
        assert memory.index(conversation_id) == 45
        assert found(memory, conversation_id, "needle", threshold=0.9) == ["needle"]


@needs("stable_positions")
class TestC20VectorsInAStore(VectorRules):
    """In a VectorStore that is no part of the backend."""

    def options(self, harness: Harness) -> dict[str, Any]:
        """The smallest store there is."""
        return {"store": ListStore()}

    def test_a_deletion_empties_the_store(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Of the conversation, by any handle on the connections; what goes otherwise is emptied when it is met."""
        store, other = ListStore(), new_id()
        owned = repository.for_owner(new_id("owner"))
        memory = vector_memory(owned, WordEmbedding(), store=store)
        messages = conversation()
        for where in (conversation_id, other):
            owned.append(where, [Message(message.role, message.parts) for message in messages])
            memory.index(where)
        assert sum(map(len, store.items.values())) == 8
        repository.for_owner(owned.owner).delete_by_conversation_id(conversation_id)
        assert sum(map(len, store.items.values())) == 4
        gone = owned.find_by_conversation_id(other)[0]
        owned.delete_messages(other, [gone.id])
        found(memory, other, "dog")
        assert sum(map(len, store.items.values())) == 3


@needs("vectors", "vector_options")
class TestC20VectorsInTables(VectorRules):
    """In the backend's own tables, where a message that goes takes its vector with it."""

    def options(self, harness: Harness) -> dict[str, Any]:
        """What the harness says."""
        return harness.vector_options()

    def test_two_models_keep_to_themselves(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Each under its name and with its own dimension, which never changes."""
        name = new_id("model")
        options = {**self.options(harness), "model": name}
        repository.append(conversation_id, conversation())
        vector_memory(repository, WordEmbedding(), **options).index(conversation_id)
        with pytest.raises(EmbeddingError, match="64 dimensions"):
            vector_memory(repository, lambda texts: [[1.0, 0.0]] * len(texts), **options).search(conversation_id, "dog")
        flat = vector_memory(repository, lambda texts: [[1.0, 0.0]] * len(texts), **{**options, "model": name + "2"})
        assert len(flat.search(conversation_id, "dog")) == 4
        assert flat.search(conversation_id, "dog")[0].score == pytest.approx(1, abs=1e-5)
