"""One text of a test for both forms: the asynchronous repository behind the synchronous methods.

`blocking(repository)` runs each call as a task of an event loop in a thread of its own and waits for it. That is a fair
test of the asynchronous form: every call goes through the real `async def` methods, its runner and its driver, on a
running loop; threads that call at the same time become tasks that interleave on that loop, so tests of
concurrency with threads test tasks as well. What needs a loop of its own (cancellation, a second event loop) is
written natively in the rule's class.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from chatkeep.async_repository import AsyncChatMemoryRepository

T = TypeVar("T")

PATIENCE = 120.0
"""Seconds until a call that never ends fails its test instead of hanging the run."""

_loops: dict[int, asyncio.AbstractEventLoop] = {}
_lock = threading.Lock()


def wait_for(awaitable: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that runs on the suite's loop."""
    return asyncio.run_coroutine_threadsafe(awaitable, _loop()).result(PATIENCE)


def blocking(repository: AsyncChatMemoryRepository) -> BlockingRepository:
    """The repository (or a memory over one) with the methods of the synchronous form."""
    return BlockingRepository(repository)


class BlockingRepository:
    """Stands for a ChatMemoryRepository in tests: same methods, same properties, an asynchronous one behind."""

    def __init__(self, repository: AsyncChatMemoryRepository) -> None:
        self.asynchronous = repository

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.asynchronous, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute

        def call(*arguments: Any, **options: Any) -> Any:
            return wait_for(attribute(*arguments, **options))

        return call

    def for_owner(self, owner: str) -> BlockingRepository:
        return BlockingRepository(self.asynchronous.for_owner(owner))

    def __enter__(self) -> BlockingRepository:
        wait_for(self.asynchronous.__aenter__())
        return self

    def __exit__(self, *error: Any) -> None:
        wait_for(self.asynchronous.__aexit__(*error))

    def __repr__(self) -> str:
        return repr(self.asynchronous)


def _loop() -> asyncio.AbstractEventLoop:
    # By process: the thread of a parent's loop does not survive a fork.
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="chatkeep-conformance", daemon=True).start()
        return loop


@atexit.register
def _stop_loop() -> None:
    loop = _loops.pop(os.getpid(), None)
    if loop is not None:
        loop.call_soon_threadsafe(loop.stop)
