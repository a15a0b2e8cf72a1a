"""A cancelled call of the async repository: its write has happened or never will, and the pool stays usable."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import threading
import time
import uuid
from pathlib import Path

import pytest

from chatkeep import AsyncChatMemoryRepository, Message, open_async_repository, open_repository
from tests.conformance.relational_harness import RelationalHarness

ROUNDS = 80


async def _cancelled_after(steps: int, seconds: float, call: asyncio.Task[int]) -> bool:
    """Cancel after so many turns of the event loop and a little time; whether the cancellation arrived."""
    for _ in range(steps):
        await asyncio.sleep(0)
    if seconds:
        await asyncio.sleep(seconds)
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        return True
    return False


def _moments() -> list[tuple[int, float]]:
    """Moments from before the first statement to after the last, more of them where statements are under way."""
    chance = random.Random(20)
    return [(step, 0.0) for step in range(20)] + [(0, chance.random() ** 2 * 0.004) for _ in range(ROUNDS - 20)]


@pytest.mark.asyncio
async def test_appends(url: str) -> None:
    # One connection for the cancelled calls, and an observer of its own: a transaction that a cancellation left open
    # would be visible to the next call on its connection, and to nobody else.
    async with (
        await open_async_repository(url, pool_size=1) as repository,
        await open_async_repository(url, schema="ignore") as observer,
    ):
        stored = 0
        arrived = 0
        for number, (steps, seconds) in enumerate(_moments()):
            call = asyncio.create_task(repository.append("c", [Message.user(f"{number}a"), Message.user(f"{number}b")]))
            cancelled = await _cancelled_after(steps, seconds, call)
            now = await observer.count_messages("c")
            assert now - stored in ((0, 2) if cancelled else (2,))
            await asyncio.sleep(0.002)
            assert await observer.count_messages("c") == now, "it happened after its cancellation had arrived"
            stored = now
            arrived += cancelled
        assert arrived > 0
        await _is_usable(repository)


@pytest.mark.asyncio
async def test_replacements(url: str) -> None:
    async with (
        await open_async_repository(url, pool_size=1) as repository,
        await open_async_repository(url, schema="ignore") as observer,
    ):
        old = ["start"]
        await repository.save_all("c", [Message.user("start")])
        arrived = 0
        for number, (steps, seconds) in enumerate(_moments()):
            new = [f"{number}:{index}" for index in range(5)]
            call = asyncio.create_task(repository.save_all("c", [Message.user(text) for text in new]))
            cancelled = await _cancelled_after(steps, seconds, call)
            found = [message.text for message in await observer.find_by_conversation_id("c")]
            assert found in ([old, new] if cancelled else [new])
            await asyncio.sleep(0.002)
            assert [message.text for message in await observer.find_by_conversation_id("c")] == found
            old = found
            arrived += cancelled
            # What the next call acknowledges must be committed, and not lie in a transaction left open before it.
            await repository.append("next", Message.user(f"{number}"))
            assert await observer.count_messages("next") == number + 1
        assert arrived > 0
        await _is_usable(repository)


@pytest.mark.asyncio
@pytest.mark.parametrize("pause", [None, 0.0, 0.002])
async def test_a_second_cancellation_does_not_break_off_the_first(
    server: RelationalHarness, database: str, pause: float | None
) -> None:
    """A task group with a time-out cancels twice; what ends the statement must get through."""
    conversation = uuid.uuid4().hex
    # Where threads do the work, what waits for a lock can't be ended before its time-out.
    async with await open_async_repository(database, lock_timeout="1s") as repository:
        await repository.append(conversation, Message.user("before"))
        with server.locked(database, conversation):
            call = asyncio.create_task(repository.append(conversation, Message.user("cancelled")))
            await asyncio.sleep(0.1)
            begun = time.monotonic()
            call.cancel()
            if pause is not None:
                await asyncio.sleep(pause)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            if server.expected_capabilities.native_async:
                assert time.monotonic() - begun < 0.7, "the cancelled call went on waiting"
        await asyncio.sleep(0.1)
        assert await repository.count_messages(conversation) == 1
        await _is_usable(repository)


class SoftTimeLimitError(Exception):
    """What a task queue raises out of a signal handler."""


@pytest.mark.sqlite
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
def test_an_exception_out_of_a_signal_handler_leaves_no_transaction_open(tmp_path: Path) -> None:
    """It arrives while SQLite waits in BEGIN IMMEDIATE for another writer, and BEGIN then succeeds."""

    def interrupt(*_: object) -> None:
        raise SoftTimeLimitError

    path = tmp_path / "chat.db"
    with open_repository(f"sqlite:///{path}") as repository:
        repository.append("c", Message.user("before"))
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.4, other.execute, ("COMMIT",))
        release.start()
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(SoftTimeLimitError):
                repository.append("c", Message.user("interrupted"))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            release.join()
        repository.append("c", Message.user("after"))
        other.execute("BEGIN IMMEDIATE")  # nobody holds the write lock
        other.execute("COMMIT")
        other.close()
        assert [message.text for message in repository.find_by_conversation_id("c")] == ["before", "after"]


async def _is_usable(repository: AsyncChatMemoryRepository) -> None:
    """More calls at once than connections: none has leaked."""
    conversation = uuid.uuid4().hex
    async with asyncio.timeout(20):
        await asyncio.gather(*(repository.append(conversation, Message.user(str(number))) for number in range(20)))
    assert await repository.count_messages(conversation) == 20
