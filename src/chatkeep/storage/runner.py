"""How prepared calls reach a backend: retries once for all, and the sync and async ways of running them.

A `Call` is synchronous code. The sync runner calls it; the async ones run it in a greenlet that awaits the driver,
in a worker thread, or in place. So every operation exists once.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from chatkeep.errors import ContentionError, Outcome, StorageConnectionError, StorageError
from chatkeep.storage.backend import Backend

T = TypeVar("T")

RETRY_SECONDS = 10.0
"""How long contention and broken connections are retried inside before the caller sees them."""


class Call(Generic[T]):
    """One checked and encoded call.

    `work(again)` does it; `again` is true when an earlier try may have landed. `repeatable` says that a second
    effect of the call equals the first, so that it may be retried although the reply of the first was lost.
    """

    __slots__ = ("repeatable", "work")

    def __init__(self, work: Callable[[bool], T], *, repeatable: bool) -> None:
        self.work = work
        self.repeatable = repeatable


def run_with_retries(call: Call[T], sleep: Callable[[float], None], seconds: float) -> T:
    """The result of `call`, after retries of contention and broken connections for up to `seconds`.

    The first try is direct, since nearly all succeed; tenacity comes in only after a failure.
    """
    try:
        return call.work(False)
    except StorageError as error:
        if not may_retry(error, call.repeatable):
            raise
        unknown = error.outcome is Outcome.UNKNOWN
    import tenacity  # only here, for it is half of the import time of the whole package

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_random_exponential(multiplier=0.02, max=1.0),
        retry=tenacity.retry_if_exception(lambda error: may_retry(error, call.repeatable)),
        sleep=sleep,
        reraise=True,
    )
    sleep(0.01)
    for attempt in retrying:
        with attempt:
            try:
                return call.work(unknown)
            except StorageError as error:
                # A later NOT_APPLIED can't take back that an earlier try may have landed.
                unknown = unknown or error.outcome is Outcome.UNKNOWN
                if unknown:
                    error.outcome = Outcome.UNKNOWN
                raise
    raise AssertionError("tenacity reraises")


def may_retry(error: BaseException, repeatable: bool) -> bool:
    """Contention and connection errors, where a repeated call is safe."""
    if not isinstance(error, (ContentionError, StorageConnectionError)):
        return False
    return repeatable or error.outcome is Outcome.NOT_APPLIED


class SyncRunner:
    """Calls in the caller's thread."""

    def __init__(self, retry_seconds: float = RETRY_SECONDS) -> None:
        self.retry_seconds = retry_seconds

    def run(self, call: Call[T]) -> T:
        return run_with_retries(call, time.sleep, self.retry_seconds)

    def close(self) -> None:
        """Nothing to release."""


class AsyncRunner:
    """Calls for the async repository. A cancelled call has happened or never will when its CancelledError arrives."""

    def __init__(self, retry_seconds: float = RETRY_SECONDS) -> None:
        self.retry_seconds = retry_seconds

    async def run(self, call: Call[T]) -> T:
        """In place: for backends where nothing blocks."""
        return run_with_retries(call, time.sleep, self.retry_seconds)

    def close(self) -> None:
        """Nothing to release."""


class GreenletRunner(AsyncRunner):
    """The call runs in a greenlet; where the driver must wait, the greenlet awaits it on the event loop."""

    async def run(self, call: Call[T]) -> T:
        from sqlalchemy.util import await_only, greenlet_spawn

        def sleep(seconds: float) -> None:
            await_only(asyncio.sleep(seconds))

        task = asyncio.ensure_future(greenlet_spawn(run_with_retries, call, sleep, self.retry_seconds))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Cancelled once, the driver ends the statement on the server and the session rolls back. A second
            # cancellation would break that off half-way, so it waits here.
            task.cancel()
            await _settled(task)
            raise


class ThreadRunner(AsyncRunner):
    """The whole call runs in one of a few worker threads: one hop per operation, not one per statement."""

    def __init__(self, retry_seconds: float = RETRY_SECONDS, threads: int = 8) -> None:
        super().__init__(retry_seconds)
        self._count = threads
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._threads = concurrent.futures.ThreadPoolExecutor(self._count, thread_name_prefix="chatkeep")

    async def run(self, call: Call[T]) -> T:
        if self._process != os.getpid():
            self._start()  # threads don't cross a fork
        cancelled = threading.Event()

        def sleep(seconds: float) -> None:
            if cancelled.wait(seconds):
                raise asyncio.CancelledError  # nobody waits for the next try

        job = self._threads.submit(run_with_retries, call, sleep, self.retry_seconds)
        future = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # A call that no thread has taken yet is withdrawn. One that runs can't be interrupted: wait until it is
            # settled, also when cancelled again meanwhile, so that nothing happens after the cancellation.
            if not job.cancel():
                cancelled.set()
                await _settled(future)
            raise

    def close(self) -> None:
        self._threads.shutdown(wait=False)


async def _settled(future: asyncio.Future[T]) -> None:
    """Wait for the end of a call that was cancelled, also when cancelled again meanwhile."""
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()  # seen, so that asyncio does not report it as forgotten


def async_runner(backend: Backend, retry_seconds: float = RETRY_SECONDS) -> AsyncRunner:
    """The runner that a backend's bridge asks for."""
    if backend.bridge == "greenlet":
        return GreenletRunner(retry_seconds)
    if backend.bridge == "thread":
        return ThreadRunner(retry_seconds)
    return AsyncRunner(retry_seconds)
