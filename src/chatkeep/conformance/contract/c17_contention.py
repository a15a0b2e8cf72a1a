"""C17 contention inside: locked, deadlock and transient errors are retried, bounded; upserts don't race."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from chatkeep import ChatMemoryRepository, ContentionError, Message, Outcome, StorageConnectionError, StorageError
from chatkeep.conformance.faults import failing_first
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Form, Harness, needs
from chatkeep.conformance.support import in_threads, new_id, said, texts
from chatkeep.conformance.workers import append_many, in_processes, replace_many


class TestC17Contention:
    """Writers that meet wait for each other; the caller sees neither lock nor deadlock."""

    @needs("concurrent_appends")
    def test_a_hot_key_takes_all_writers(self, repository: ChatMemoryRepository) -> None:
        """Twenty rounds of eight writers on one conversation that is absent at the start of each round."""
        for turn in range(20):
            conversation_id = new_id(f"hot-{turn}")
            in_threads(8, lambda n, name=conversation_id: repository.append(name, said(2, f"writer {n}")))  # type: ignore[misc]
            assert repository.count_messages(conversation_id) == 16

    @needs("concurrent_appends", "atomic_replace")
    def test_writes_of_all_kinds_meet_without_an_error(self, opened: Opened, conversation_id: str) -> None:
        """Appends, replacements, deletions and directory changes in every order, from two repositories."""
        repositories = (opened(), opened())
        lists = [said(3, f"list {n}") for n in range(4)]

        def work(number: int) -> None:
            chance = random.Random(number)
            repository = repositories[number % 2]
            for turn in range(12):
                match chance.randrange(6):
                    case 0:
                        repository.save_all(conversation_id, lists[number % 4])
                    case 1:
                        repository.delete_messages(conversation_id, [lists[turn % 4][0].id])
                    case 2:
                        repository.delete_by_conversation_id(conversation_id)
                    case 3:
                        repository.append(conversation_id, lists[turn % 4][1])
                    case _:
                        repository.append(conversation_id, said(2, f"writer {number} turn {turn}"))

        in_threads(8, work)
        found = repositories[0].find_by_conversation_id(conversation_id)
        assert repositories[0].count_messages(conversation_id) == len(found)
        assert len({message.id for message in found}) == len(found)

    def test_many_conversations_written_in_opposite_orders(self, repository: ChatMemoryRepository) -> None:
        """Two groups of writers go through the same conversations from both ends; nobody deadlocks."""
        names = [new_id() for _ in range(6)]

        def work(number: int) -> None:
            for _ in range(3):
                for name in names[:: 1 if number % 2 else -1]:
                    repository.append(name, said(1, f"writer {number}"))

        in_threads(8, work)
        assert [repository.count_messages(name) for name in names] == [24] * 6

    def test_messages_shared_in_opposite_orders(self, repository: ChatMemoryRepository) -> None:
        """The same message ids, given forwards and backwards at the same time, are stored once each."""
        for turn in range(5):
            conversation_id = new_id(f"both-{turn}")
            messages = said(6)
            in_threads(
                6,
                lambda n, name=conversation_id, given=messages: repository.append(  # type: ignore[misc]
                    name, given[:: 1 if n % 2 else -1]
                ),
            )
            found = repository.find_by_conversation_id(conversation_id)
            assert found in (messages, messages[::-1])

    @needs("conversation_metadata")
    def test_directory_changes_meet_appends(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """A title set again and again while others append: neither undoes the other."""
        repository.append(conversation_id, said(1))

        def work(number: int) -> None:
            for turn in range(8):
                if number % 2:
                    repository.append(conversation_id, said(1, f"writer {number} turn {turn}"))
                elif number:
                    repository.update_conversation(conversation_id, metadata={f"{number}": turn})
                else:
                    repository.update_conversation(conversation_id, title=f"title {turn}")

        in_threads(6, work)
        conversation = repository.get_conversation(conversation_id)
        assert conversation is not None
        assert (conversation.message_count, conversation.title) == (25, "title 7")
        assert conversation.metadata in ({"2": 7}, {"4": 7})

    @needs("shared_between_processes")
    def test_two_processes_meet_at_one_key(self, harness: Harness, form: Form, namespace: str, opened: Opened) -> None:
        """Two processes append to, and two replace, one conversation each that is absent at the start."""
        appended, replaced = new_id("appended"), new_id("replaced")
        common = {"form": form, "url": namespace, "calls": 15, "size": 2}
        in_processes(harness, append_many, [{**common, "conversation_id": appended, "writer": w} for w in ("a", "b")])
        in_processes(harness, replace_many, [{**common, "conversation_id": replaced, "writer": w} for w in ("a", "b")])
        repository = opened()
        assert repository.count_messages(appended) == 60
        found = texts(repository.find_by_conversation_id(replaced))
        assert found in ([f"{writer} 0014 0", f"{writer} 0014 1"] for writer in ("a", "b"))

    @needs("locked")
    def test_a_short_lock_is_waited_for(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """Another client holds the conversation for a moment: the append waits and succeeds."""
        repository = opened()
        repository.append(conversation_id, said(1))
        holding, release = threading.Event(), threading.Event()

        def work(number: int) -> float:
            if number == 0:
                with harness.locked(namespace, conversation_id):
                    holding.set()
                    release.wait(0.4)
                return 0.0
            holding.wait(30)
            began = time.monotonic()
            repository.append(conversation_id, said(1, "after"))
            return time.monotonic() - began

        waited = in_threads(2, work)[1]
        assert waited > 0.2, "the lock of the harness locked nothing"
        assert repository.count_messages(conversation_id) == 2

    @needs("locked")
    def test_a_long_lock_is_given_up_in_time(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """What the lock outlasts is an error of contention or time-out that says: not applied."""
        repository = opened(retry_timeout=0.5, **harness.impatient)
        repository.append(conversation_id, said(1))
        with harness.locked(namespace, conversation_id):
            began = time.monotonic()
            with pytest.raises(StorageError) as caught:
                repository.append(conversation_id, said(1, "refused"))
            assert time.monotonic() - began < 10
            assert caught.value.outcome is Outcome.NOT_APPLIED
        repository.append(conversation_id, said(1, "after"))
        assert texts(repository.find_by_conversation_id(conversation_id)) == ["line 00000", "after 00000"]


class TestC17Retries:
    """The retries themselves, at the seam that every backend has."""

    @pytest.mark.parametrize("error", [ContentionError("busy"), StorageConnectionError("gone")], ids=["busy", "gone"])
    @pytest.mark.parametrize("verb", ["append", "replace", "find_messages", "delete_messages"])
    def test_a_passing_failure_is_retried(
        self, repository: ChatMemoryRepository, conversation_id: str, verb: str, error: StorageError
    ) -> None:
        """Three failures that were not applied, then success: the caller sees the success alone."""
        messages = said(2)
        repository.append(conversation_id, messages)
        calls: dict[str, Callable[[], object]] = {
            "append": lambda: repository.append(conversation_id, said(1)),
            "replace": lambda: repository.save_all(conversation_id, said(1), expected_version=None),
            "find_messages": lambda: repository.find_by_conversation_id(conversation_id),
            "delete_messages": lambda: repository.delete_messages(conversation_id, [messages[0].id]),
        }
        with failing_first(repository, verb, error, times=3) as tries:
            calls[verb]()
        assert len(tries) == 4
        expected = {"append": 3, "replace": 1, "find_messages": 2, "delete_messages": 1}
        assert repository.count_messages(conversation_id) == expected[verb]

    def test_retries_end_after_their_time(self, opened: Opened, conversation_id: str) -> None:
        """After the time that the repository was given, with the engine's error."""
        repository = opened(retry_timeout=0.3)
        began = time.monotonic()
        with failing_first(repository, "append", ContentionError("busy"), times=10**6) as tries:
            with pytest.raises(ContentionError):
                repository.append(conversation_id, said(1))
        assert 2 <= len(tries) <= 200
        assert 0.2 < time.monotonic() - began < 5

    def test_other_errors_are_not_retried(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """An engine that refuses for another reason is asked once."""
        with failing_first(repository, "append", StorageError("no"), times=10) as tries:
            with pytest.raises(StorageError, match="no"):
                repository.append(conversation_id, Message.user("Hi"))
        assert len(tries) == 1
