"""C15 connections: they heal, close, survive fork, threads and a new event loop, and don't leak."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from chatkeep import ChatMemoryRepository, Message, StorageConnectionError, open_async_repository
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Form, Harness, needs
from chatkeep.conformance.programs import EXIT_WITHOUT_CLOSE, FORK, INTERRUPTED
from chatkeep.conformance.support import eventually, in_threads, new_id, run_program, said, texts


def open_files() -> int:
    """Descriptors of this process, where the system shows them."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


class TestC15Connections:
    """Connections heal, are shared, and don't leak."""

    @needs("kill_sessions")
    def test_a_killed_session_heals(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """The server ends idle sessions between calls: the next read and the next write work, each at first try."""
        repository = opened()
        calls: list[Callable[[], object]] = [
            lambda: repository.append(conversation_id, said(1)),
            lambda: repository.find_by_conversation_id(conversation_id),
            lambda: repository.save_all(conversation_id, said(2)),
            lambda: repository.find_by_conversation_id(conversation_id, limit=1),
            lambda: repository.count_messages(conversation_id),
            lambda: repository.history(conversation_id),
            lambda: repository.get_conversation(conversation_id),
            lambda: repository.update_conversation(conversation_id, title="a"),
            lambda: repository.delete_messages(conversation_id, ["unknown"]),
            lambda: repository.list_conversations(),
            lambda: repository.find_conversation_ids(),
            lambda: repository.purge_expired(dry_run=True),
            lambda: repository.append(conversation_id, []),
            lambda: repository.delete_by_conversation_id(conversation_id),
        ]
        for call in calls:
            repository.count_messages(conversation_id)
            assert harness.kill_sessions(namespace) > 0
            call()

    @needs("kill_sessions")
    def test_sessions_killed_under_load_lose_nothing(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """The server ends all sessions again and again while eight writers append: every call succeeds, once."""
        repository = opened()
        over = threading.Event()

        def work(number: int) -> None:
            if number == 0:
                while not over.wait(0.05):
                    harness.kill_sessions(namespace)
                return
            try:
                for turn in range(15):
                    repository.append(conversation_id, Message.user(f"{number} {turn:02}"))
            finally:
                if number == 1:
                    over.set()

        try:
            in_threads(9, work)
        finally:
            over.set()
        found = texts(repository.find_by_conversation_id(conversation_id))
        assert sorted(found) == sorted(f"{number} {turn:02}" for number in range(1, 9) for turn in range(15))

    def test_threads_share_a_repository(self, repository: ChatMemoryRepository) -> None:
        """Eight threads write and read at the same time, each its own conversation."""

        def work(number: int) -> None:
            name = new_id(f"thread-{number}")
            for turn in range(10):
                repository.append(name, said(2, f"{number} {turn}"))
                assert repository.count_messages(name) == 2 * (turn + 1)
                assert texts(repository.find_by_conversation_id(name, limit=2)) == texts(said(2, f"{number} {turn}"))

        in_threads(8, work)

    def test_more_threads_than_connections_all_get_their_turn(self, opened: Opened) -> None:
        """Forty callers at once wait for each other instead of failing."""
        repository = opened()
        names = [new_id() for _ in range(40)]
        in_threads(40, lambda n: repository.append(names[n], said(1)))
        assert [repository.count_messages(name) for name in names] == [1] * 40

    @needs("shared_between_processes")
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
    @pytest.mark.parametrize("first", ["parent", "child"])
    def test_a_fork_may_go_on_using_the_repository(
        self,
        harness: Harness,
        form: Form,
        fresh_url: Callable[[], str],
        opened: Opened,
        conversation_id: str,
        first: str,
    ) -> None:
        """Parent and child write and read at the same time after a fork, and what one writes after the other has
        closed is kept; in a namespace that nobody else holds open."""
        url = fresh_url()
        run_program(harness, FORK[form], url, conversation_id, first)
        found = texts(opened(url).find_by_conversation_id(conversation_id))
        assert (found[0], found[-1]) == ("before", "after")
        for who in ("parent", "child"):
            assert [text for text in found if text.startswith(who)] == [f"{who} {n:02}" for n in range(20)]
        assert len(found) == 42

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no interval timers")
    def test_an_interrupted_write_leaves_the_repository_usable(
        self, harness: Harness, fresh_url: Callable[[], str]
    ) -> None:
        """An exception out of a signal handler, anywhere in a write: it happened or not, and the next call is whole."""
        options = json.dumps(dict(harness.one_connection))
        # What the pool logs of an interrupt on its way is not asked for.
        run_program(harness, INTERRUPTED, fresh_url(), new_id(), options, silent=False)

    def test_a_new_event_loop_may_use_the_repository(self, harness: Harness, namespace: str) -> None:
        """One asynchronous repository through three loops, one after the other, without a close between."""
        conversation_id = new_id()
        repository = asyncio.run(open_async_repository(namespace))

        async def use(turn: int) -> int:
            await asyncio.gather(*(repository.append(conversation_id, said(1, f"{turn} {n}")) for n in range(5)))
            return len(await repository.find_by_conversation_id(conversation_id))

        assert [asyncio.run(use(turn)) for turn in range(3)] == [5, 10, 15]
        asyncio.run(repository.close())

    @needs("durable")
    def test_a_program_may_end_without_close(
        self, harness: Harness, form: Form, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """Exit code 0, nothing on stderr, what was acknowledged is there."""
        assert run_program(harness, EXIT_WITHOUT_CLOSE[form], namespace, conversation_id) == "done\n"
        assert texts(opened().find_by_conversation_id(conversation_id)) == ["left open"]

    def test_a_program_with_its_own_store_may_end_without_close(self, harness: Harness, form: Form) -> None:
        """The same where nothing is left of the store afterwards."""
        url = harness.fresh_url()
        try:
            assert run_program(harness, EXIT_WITHOUT_CLOSE[form], url, new_id()) == "done\n"
        finally:
            harness.drop(url)

    def test_repositories_do_not_leak(self, harness: Harness, form: Form, namespace: str) -> None:
        """Five hundred of each form opened, used and closed: files, threads and the server's sessions as before."""
        conversation_id = new_id()
        sessions = harness.why_not("count_sessions") is None
        counts = []
        for rounds in (5, 495):
            for _ in range(rounds):
                with harness.open(form, namespace, schema="ignore") as repository:
                    repository.count_messages(conversation_id)
            gc.collect()
            held = harness.count_sessions(namespace) if sessions else 0
            counts.append((held, open_files(), threading.active_count()))
        assert counts[1][0] <= counts[0][0] + 1
        assert counts[1][1] <= counts[0][1] + 3
        assert counts[1][2] <= counts[0][2] + 1

    @needs("count_sessions")
    def test_a_closed_repository_holds_no_session(
        self, harness: Harness, form: Form, fresh_url: Callable[[], str], conversation_id: str
    ) -> None:
        """After the close of a repository that was used by many at once, the server holds nothing of it."""
        url = fresh_url()
        with harness.open(form, url) as repository:
            in_threads(8, lambda n: repository.append(conversation_id, said(1)))
            assert harness.count_sessions(url) > 0
        assert eventually(lambda: harness.count_sessions(url) == 0)

    @needs("unreachable_url")
    def test_an_unreachable_server_is_a_connection_error(self, harness: Harness, form: Form) -> None:
        """Within the time that retries may take, with the place and without the password."""
        url = harness.unreachable_url("s3cret-pass")
        with pytest.raises(StorageConnectionError) as caught:
            with harness.open(form, url, schema="ignore", retry_timeout=0.5) as repository:
                repository.find_conversation_ids()
        assert "s3cret-pass" not in str(caught.value)
