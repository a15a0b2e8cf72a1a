"""C3 no lost append: parallel writers all get through, and a stale whole-list write is refused."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from chatkeep import ChatMemoryRepository, ConcurrentChangeError, Message, open_async_repository
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Form, Harness, needs
from chatkeep.conformance.support import contiguous, in_threads, new_id, said, texts
from chatkeep.conformance.workers import append_many, in_processes


def batch(writer: object, call: int, size: int) -> list[Message]:
    """Messages that tell writer, call and place."""
    return [Message.user(f"{writer} {call:04} {place}") for place in range(size)]


def check_all_there(found: list[str], writers: list[str], calls: int, size: int, *, in_order: bool = True) -> None:
    """Every message once, each call's side by side, each writer's calls in order."""
    assert len(found) == len(writers) * calls * size
    assert len(set(found)) == len(found)
    for writer in writers:
        for call in range(calls):
            assert contiguous(found, texts(batch(writer, call, size))), f"writer {writer}, call {call}"
        own = [text for text in found if text.startswith(f"{writer} ")]
        assert not in_order or own == sorted(own)


@needs("concurrent_appends")
class TestC03NoLostAppend:
    """N writers times M appends are N times M appends."""

    @pytest.mark.parametrize(("writers", "calls", "size"), [(8, 15, 3), (16, 5, 1)])
    def test_parallel_appends_all_survive(
        self, repository: ChatMemoryRepository, conversation_id: str, writers: int, calls: int, size: int
    ) -> None:
        """Threads (or tasks) of one repository: all messages, each call's side by side, each writer's in order."""
        in_threads(
            writers,
            lambda writer: [repository.append(conversation_id, batch(writer, call, size)) for call in range(calls)],
        )
        found = texts(repository.find_by_conversation_id(conversation_id))
        check_all_there(found, [str(writer) for writer in range(writers)], calls, size)
        assert repository.count_messages(conversation_id) == writers * calls * size

    def test_parallel_appends_of_several_repositories_all_survive(self, opened: Opened, conversation_id: str) -> None:
        """Each writer has its own repository, so that no lock inside one hides a race in the store."""
        repositories = [opened() for _ in range(6)]
        in_threads(
            6, lambda writer: [repositories[writer].append(conversation_id, batch(writer, n, 2)) for n in range(10)]
        )
        found = texts(repositories[0].find_by_conversation_id(conversation_id))
        check_all_there(found, list("012345"), 10, 2)

    @pytest.mark.parametrize("turn", range(3))
    def test_the_first_append_may_be_raced(self, repository: ChatMemoryRepository, turn: int) -> None:
        """Twenty-five writers meet at a conversation that does not exist yet."""
        conversation_id = new_id(f"race-{turn}")
        versions = in_threads(25, lambda writer: repository.append(conversation_id, batch(writer, 0, 2)))
        found = texts(repository.find_by_conversation_id(conversation_id))
        check_all_there(found, [str(writer) for writer in range(25)], 1, 2)
        assert len(set(versions)) == 25, "two calls were given the same version"

    def test_appends_to_many_conversations_do_not_mix(self, repository: ChatMemoryRepository) -> None:
        """Writers of different conversations see their own messages only."""
        ids = [new_id() for _ in range(8)]
        in_threads(8, lambda n: [repository.append(ids[n], batch(ids[n], call, 2)) for call in range(5)])
        for conversation_id in ids:
            found = texts(repository.find_by_conversation_id(conversation_id))
            check_all_there(found, [conversation_id], 5, 2)

    @needs("shared_between_processes")
    def test_parallel_appends_of_processes_all_survive(
        self, harness: Harness, form: Form, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Two processes with connections of their own, while this one appends too."""
        arguments = {"form": form, "url": namespace, "conversation_id": conversation_id, "calls": 20, "size": 3}
        results = in_processes(harness, append_many, [{**arguments, "writer": f"p{n}"} for n in range(2)])
        found = texts(repository.find_by_conversation_id(conversation_id))
        check_all_there(found, ["p0", "p1"], 20, 3, in_order=form == "sync")
        versions = [version for result in results for version in result]
        assert len(set(versions)) == 40

    def test_parallel_tasks_of_one_loop_all_survive(self, harness: Harness, namespace: str) -> None:
        """Asyncio tasks, natively: forty appends in one gather."""
        conversation_id = new_id()

        async def run() -> list[Message]:
            async with await open_async_repository(namespace) as repository:
                await asyncio.gather(*(repository.append(conversation_id, batch(n, 0, 2)) for n in range(40)))
                return await repository.find_by_conversation_id(conversation_id)

        check_all_there(texts(asyncio.run(run())), [str(n) for n in range(40)], 1, 2)

    def test_a_cancelled_append_has_happened_or_never_will(self, harness: Harness, namespace: str) -> None:
        """When CancelledError arrives the outcome is settled: all of the call's messages or none, now and later."""
        conversation_id = new_id()
        chance = random.Random(6)

        async def run() -> None:
            # One connection: whatever a cancellation leaves on it meets the next call. The other repository sees
            # only what is committed.
            async with (
                await open_async_repository(namespace, **harness.one_connection) as repository,  # type: ignore[arg-type]
                await open_async_repository(namespace) as other,
            ):
                await repository.append(conversation_id, batch("first", 0, 1))
                settled: list[list[Message]] = []
                for call in range(60):
                    task = asyncio.create_task(repository.append(conversation_id, batch("c", call, 3)))
                    if call % 4:
                        await asyncio.sleep(chance.uniform(0, 0.004))
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    settled.append(await other.find_by_conversation_id(conversation_id))
                    if call % 3 == 0:
                        await repository.append(conversation_id, batch("acknowledged", call, 1))
                        seen = texts(await other.find_by_conversation_id(conversation_id, limit=1))
                        assert seen == texts(batch("acknowledged", call, 1))
                await asyncio.sleep(0.2)
                last = await other.find_by_conversation_id(conversation_id)
                for call, now in enumerate(settled):
                    assert last[: len(now)] == now
                    stored = [text for text in texts(last) if text.startswith(f"c {call:04} ")]
                    assert stored in ([], texts(batch("c", call, 3)))
                    assert len([text for text in texts(now) if text.startswith(f"c {call:04} ")]) == len(stored)
                # The connection that a cancellation hit is still good, or was replaced.
                await repository.append(conversation_id, batch("last", 0, 1))

        asyncio.run(run())

    def test_a_cancelled_replacement_has_happened_or_never_will(self, harness: Harness, namespace: str) -> None:
        """A transaction of several statements, cancelled at any of its awaits, leaves the old list or the new."""
        conversation_id = new_id()
        chance = random.Random(7)

        async def run() -> None:
            async with (
                await open_async_repository(namespace, **harness.one_connection) as repository,  # type: ignore[arg-type]
                await open_async_repository(namespace) as other,
            ):
                present = batch("first", 0, 3)
                await repository.save_all(conversation_id, present)
                for call in range(60):
                    new = batch("new", call, 3)
                    task = asyncio.create_task(repository.save_all(conversation_id, new))
                    await asyncio.sleep(chance.uniform(0, 0.003))
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    found = await other.find_by_conversation_id(conversation_id)
                    assert found in (present, new)
                    present = found
                    if call % 3 == 0:
                        present = batch("acknowledged", call, 2)
                        await repository.save_all(conversation_id, present)
                        assert await other.find_by_conversation_id(conversation_id) == present

        asyncio.run(run())

    @needs("locked")
    def test_a_call_cancelled_twice_is_settled_too(self, harness: Harness, namespace: str) -> None:
        """While it waits for another client's lock: nothing is written after its CancelledError arrived."""
        conversation_id = new_id()

        async def run() -> None:
            async with await open_async_repository(namespace, retry_timeout=0.3, **harness.impatient) as repository:  # type: ignore[arg-type]
                await repository.append(conversation_id, batch("first", 0, 1))
                for turn in range(4):
                    with harness.locked(namespace, conversation_id):
                        task = asyncio.create_task(repository.append(conversation_id, batch("c", turn, 2)))
                        await asyncio.sleep(0.05)
                        task.cancel()
                        await asyncio.sleep(0.001 * turn)
                        task.cancel()
                        await asyncio.gather(task, return_exceptions=True)
                        settled = await repository.count_messages(conversation_id)
                    await asyncio.sleep(0.1)
                    assert await repository.count_messages(conversation_id) == settled

        asyncio.run(run())


@needs("conditional_writes")
class TestC03ConditionalWrites:
    """A write that carries the version it was based on."""

    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_a_stale_version_is_refused_and_named(
        self, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """ConcurrentChangeError names both versions and the conversation; nothing is written."""
        seen = repository.append(conversation_id, said(1, "seen"))
        actual = repository.append(conversation_id, said(1, "another writer"))
        before = repository.find_by_conversation_id(conversation_id)
        with pytest.raises(ConcurrentChangeError) as caught:
            getattr(repository, call)(conversation_id, said(1, "mine"), expected_version=seen)
        assert (caught.value.expected, caught.value.actual) == (seen, actual)
        assert caught.value.conversation_id == conversation_id
        assert str(seen) in str(caught.value)
        assert str(actual) in str(caught.value)
        assert repository.find_by_conversation_id(conversation_id) == before
        assert repository.append(conversation_id, []) == actual

    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_the_present_version_is_taken(
        self, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """The returned version, given back, is always the present one; it equals the directory's."""
        version = 0
        for turn in range(5):
            new = getattr(repository, call)(conversation_id, said(2, f"turn {turn}"), expected_version=version)
            assert new > version
            version = new
            conversation = repository.get_conversation(conversation_id)
            assert conversation is not None
            assert conversation.version == version
        assert repository.count_messages(conversation_id) == (10 if call == "append" else 2)

    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_version_zero_means_that_the_conversation_must_not_exist(
        self, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """Also not as an empty one; after a deletion it may be made again."""
        write = getattr(repository, call)
        with pytest.raises(ConcurrentChangeError) as caught:
            write(conversation_id, said(1), expected_version=7)
        assert (caught.value.expected, caught.value.actual) == (7, 0)
        assert repository.get_conversation(conversation_id) is None, "a refused write left a conversation behind"
        write(conversation_id, said(1), expected_version=0)
        with pytest.raises(ConcurrentChangeError):
            write(conversation_id, said(1), expected_version=0)
        emptied = repository.save_all(conversation_id, [])
        with pytest.raises(ConcurrentChangeError) as caught:
            write(conversation_id, said(1), expected_version=0)
        assert caught.value.actual == emptied
        repository.delete_by_conversation_id(conversation_id)
        write(conversation_id, said(1), expected_version=0)

    def test_one_of_many_who_saw_the_same_version_wins(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Eight writers count up by read, add and conditional replace; no count is lost."""
        repository.save_all(conversation_id, [Message.user("0")])

        def count_up(_: int) -> int:
            lost = 0
            for _ in range(5):
                while True:
                    conversation = repository.get_conversation(conversation_id)
                    assert conversation is not None
                    number = int(repository.find_by_conversation_id(conversation_id)[0].text)
                    try:
                        repository.save_all(
                            conversation_id, [Message.user(str(number + 1))], expected_version=conversation.version
                        )
                        break
                    except ConcurrentChangeError:
                        lost += 1
            return lost

        in_threads(8, count_up)
        assert texts(repository.find_by_conversation_id(conversation_id)) == ["40"]

    def test_a_creation_that_is_raced_happens_once(self, repository: ChatMemoryRepository) -> None:
        """Of ten writers who expect version 0, one creates the conversation and nine are told so."""
        for call, _ in itertools.product(("append", "save_all"), range(3)):
            conversation_id = new_id()

            def create(writer: int, call: str = call, conversation_id: str = conversation_id) -> bool:
                try:
                    getattr(repository, call)(conversation_id, batch(writer, 0, 2), expected_version=0)
                except ConcurrentChangeError as error:
                    assert error.actual > 0  # noqa: PT017 (either outcome is right)
                    return False
                return True

            assert sum(in_threads(10, create)) == 1
            assert repository.count_messages(conversation_id) == 2

    @pytest.mark.parametrize(("version", "error"), [(-1, ValueError), (True, TypeError), ("1", TypeError)])
    def test_what_is_no_version_is_refused(
        self, repository: ChatMemoryRepository, conversation_id: str, version: int, error: type[Exception]
    ) -> None:
        """A wrong type never counts as "no version was given"."""
        for call in (repository.append, repository.save_all):
            with pytest.raises(error, match="expected_version"):
                call(conversation_id, said(1), expected_version=version)
        assert repository.get_conversation(conversation_id) is None
