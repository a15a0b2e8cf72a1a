"""C2 atomic replace: a reader sees the old list or the new one, also when a write fails half-way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from chatkeep import ChatMemoryRepository, Message, MessageTooLargeError, StorageError, UnstorableValueError
from chatkeep.conformance.harness import Harness, Injected, needs, require
from chatkeep.conformance.support import Polling, messages_of, new_id, said

MANY_STEPS = 60


def unencodable(kind: str, limit: int) -> tuple[Any, type[Exception]]:
    """The last element of a list that can't be stored, and the error that says so."""
    if kind == "no message":
        return "just text", TypeError
    if kind == "too large":
        return Message.user("x" * (limit + 1)), MessageTooLargeError
    message = Message.user("metadata was changed after it was made", metadata={"a": [1]})
    message.metadata["a"].append((1, 2))
    return message, UnstorableValueError


class TestC02AtomicReplace:
    """All or nothing, whatever fails, and every reader sees it so."""

    @needs("atomic_replace")
    def test_a_reader_sees_the_old_list_or_the_new_one(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A second reader polls messages, history and count while two lists replace each other."""
        lists = [said(20, "old"), said(13, "new")]
        repository.save_all(conversation_id, lists[0])
        with harness.open("sync", namespace) as reader:

            def look() -> tuple[list[Message], list[Message], int]:
                found = reader.find_by_conversation_id(conversation_id)
                page = reader.history(conversation_id)
                return found, messages_of(page.items), reader.count_messages(conversation_id)

            with Polling(look) as polling:
                for turn in range(40):
                    repository.save_all(conversation_id, lists[turn % 2])
        assert all(found in lists and paged in lists and count in (13, 20) for found, paged, count in polling.seen)

    @needs("atomic_replace")
    def test_a_reader_sees_all_of_an_append_or_nothing(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """All messages of one append appear together."""
        with harness.open("sync", namespace) as reader:
            with Polling(lambda: len(reader.find_by_conversation_id(conversation_id))) as polling:
                for _ in range(30):
                    repository.append(conversation_id, said(7))
        assert {count % 7 for count in polling.seen} == {0}
        assert polling.seen == sorted(polling.seen), "an append was visible and then was not"

    @pytest.mark.parametrize("call", ["append", "save_all"])
    @pytest.mark.parametrize("kind", ["no message", "too large", "unstorable value"])
    def test_what_cannot_be_encoded_stops_the_call_before_any_statement(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str, call: str, kind: str
    ) -> None:
        """A bad last message leaves the old list, and nothing was sent."""
        old = said(3, "old")
        repository.append(conversation_id, old)
        version = repository.append(conversation_id, [])
        bad, error = unencodable(kind, repository.capabilities.max_message_bytes)
        with harness.statements() as sent:
            with pytest.raises(error, match=r"messages\[2\]"):
                getattr(repository, call)(conversation_id, [*said(2, "new"), bad])
        assert sent == []
        assert repository.find_by_conversation_id(conversation_id) == old
        assert repository.append(conversation_id, []) == version

    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_an_iterator_that_breaks_leaves_the_old_list(
        self, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """The messages are taken whole before the write begins."""

        def breaking() -> Iterator[Message]:
            yield from said(2, "new")
            raise ZeroDivisionError

        old = said(3, "old")
        repository.append(conversation_id, old)
        with pytest.raises(ZeroDivisionError):
            getattr(repository, call)(conversation_id, breaking())
        assert repository.find_by_conversation_id(conversation_id) == old

    @needs("fail_at_step", "atomic_replace")
    @pytest.mark.parametrize("call", ["save_all", "append", "delete_messages", "delete_by_conversation_id"])
    def test_a_write_that_fails_at_any_step_changes_nothing(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """Each step of a write is made to fail in turn, while a second reader polls; then the write succeeds."""
        old, new = said(5, "old"), said(4, "new")
        repository.append(conversation_id, old)
        version = repository.append(conversation_id, [])
        after = {"save_all": new, "append": old + new, "delete_messages": old[2:], "delete_by_conversation_id": []}
        writes: dict[str, Callable[[], object]] = {
            "save_all": lambda: repository.save_all(conversation_id, new),
            "append": lambda: repository.append(conversation_id, new),
            "delete_messages": lambda: repository.delete_messages(conversation_id, [m.id for m in old[:2]]),
            "delete_by_conversation_id": lambda: repository.delete_by_conversation_id(conversation_id),
        }
        failed = 0
        with harness.open("sync", namespace) as reader:
            with Polling(lambda: reader.find_by_conversation_id(conversation_id)) as polling:
                for step in range(1, MANY_STEPS):
                    try:
                        with harness.fail_at_step(step):
                            writes[call]()
                    except Injected:
                        failed += 1
                        assert reader.find_by_conversation_id(conversation_id) == old, f"step {step}"
                        assert reader.append(conversation_id, []) == version, f"step {step}"
                    else:
                        break
        assert failed == step - 1
        # A deletion may be a single step, which can't be halved.
        assert failed > 0 or call == "delete_by_conversation_id", "no step of the write could be made to fail"
        assert repository.find_by_conversation_id(conversation_id) == after[call]
        assert all(found in (old, after[call]) for found in polling.seen)

    @needs("atomic_replace")
    @pytest.mark.parametrize("when", ["insert", "commit"])
    @pytest.mark.parametrize("place", [0, 2, 4], ids=["first", "middle", "last"])
    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_what_the_engine_rejects_leaves_the_old_list(
        self,
        harness: Harness,
        namespace: str,
        repository: ChatMemoryRepository,
        conversation_id: str,
        call: str,
        place: int,
        when: Literal["insert", "commit"],
    ) -> None:
        """A real trigger or constraint refuses one message of five: nothing of the call is stored."""
        require(harness, f"rejecting_{when}")
        old, new = said(3, "old"), said(5, "new")
        rejected = new_id("rejected")
        new[place] = Message.user(rejected)
        repository.append(conversation_id, old)
        version = repository.append(conversation_id, [])
        with getattr(harness, f"rejecting_{when}")(namespace, rejected):
            with pytest.raises(StorageError) as caught:
                getattr(repository, call)(conversation_id, new)
            assert repository.find_by_conversation_id(conversation_id) == old
            assert repository.append(conversation_id, []) == version
        assert rejected not in str(caught.value), "an error text holds message content"
        getattr(repository, call)(conversation_id, new)
        assert repository.find_by_conversation_id(conversation_id) == (new if call == "save_all" else old + new)

    @needs("atomic_replace")
    def test_replacing_by_nothing_is_one_step_too(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A reader of a conversation that is emptied and filled again sees all or nothing, and always finds it."""
        messages = said(9)
        repository.save_all(conversation_id, messages)
        with harness.open("sync", namespace) as reader:

            def look() -> tuple[int, bool]:
                found = len(reader.find_by_conversation_id(conversation_id))
                return found, reader.get_conversation(conversation_id) is not None

            with Polling(look) as polling:
                for turn in range(20):
                    repository.save_all(conversation_id, [] if turn % 2 else messages)
        assert set(polling.seen) <= {(0, True), (9, True)}
