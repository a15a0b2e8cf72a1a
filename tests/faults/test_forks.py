"""A process that forks with an open repository: parent and child both go on, and nothing acknowledged is lost."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy.engine import make_url

from chatkeep import Message, open_repository

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def _in_child(work: Callable[[], object]) -> int:
    """Start `work` in a forked child; its process id. The child never returns into pytest."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    with contextlib.suppress(BaseException):
        work()
        status = 0
    os._exit(status)


def _ended(pid: int, seconds: float = 30.0) -> bool:
    """Whether the child ended well, in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False


def _texts(url: str, conversation: str) -> list[str]:
    with open_repository(url, schema="ignore") as other:
        return [message.text for message in other.find_by_conversation_id(conversation)]


def test_what_a_child_acknowledges_stays_when_the_parent_closes(url: str) -> None:
    """SQLite: a child that inherits open files would write into a log that its parent deletes (howtocorrupt, 2.6)."""
    told, tell = os.pipe()
    closed, close = os.pipe()
    repository = open_repository(url)
    repository.append("c", Message.user("parent"))

    def child() -> None:
        repository.append("c", Message.user("child 0"))
        os.write(tell, b"x")
        os.read(closed, 1)
        for number in range(1, 6):
            repository.append("c", Message.user(f"child {number}"))

    pid = _in_child(child)
    os.read(told, 1)
    repository.append("c", Message.user("parent again"))
    repository.close()
    os.write(close, b"x")
    assert _ended(pid)
    stored = _texts(url, "c")
    assert [text for text in stored if text.startswith("child")] == [f"child {number}" for number in range(6)]
    assert [text for text in stored if text.startswith("parent")] == ["parent", "parent again"]
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(make_url(url).database or "")) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert raw.execute("SELECT count(*) FROM chat_message").fetchone() == (len(stored),)
    for descriptor in (told, tell, closed, close):
        os.close(descriptor)


def test_a_child_that_closes_what_it_inherited_leaves_the_parents_connections_alone(url: str) -> None:
    with open_repository(url, pool_size=1, retry_timeout="1ms") as repository:
        repository.append("c", Message.user("before"))
        before = repository._calls.backend.database._pools[0]  # type: ignore[attr-defined]
        sessions = [connection for connection in before._connections if not url.startswith("sqlite")]
        assert _ended(_in_child(repository.close))
        for connection in sessions:
            assert repository._calls.backend.database.dialect.is_alive(connection)  # type: ignore[attr-defined]
        repository.append("c", Message.user("after"))
        assert _texts(url, "c") == ["before", "after"]


def test_forks_among_busy_threads_never_hang_a_child(url: str) -> None:
    """Any lock may be held by another thread at the moment of the fork."""
    stop = threading.Event()
    acknowledged: list[str] = []

    def write(name: int) -> None:
        number = 0
        while not stop.is_set():
            text = f"{name}:{number}"
            repository.append("busy", Message.user(text))
            acknowledged.append(text)
            number += 1

    with open_repository(url, pool_size=4) as repository:
        repository.append("busy", Message.user("start"))
        threads = [threading.Thread(target=write, args=(name,)) for name in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(15):
                pid = _in_child(partial(repository.append, "children", Message.user(f"{number}")))
                assert _ended(pid), f"child {number} hung or failed"
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert sorted(_texts(url, "children"), key=int) == [str(number) for number in range(15)]
        assert set(acknowledged) <= set(_texts(url, "busy"))
