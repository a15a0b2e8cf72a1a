"""How the verbs of a store are called and kept apart: in place for a sync store, awaited for an async one.

Both kinds of caller look the same to backend.py, whose verbs are written once.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from chatkeep.backends.custom.state import StoreState
from chatkeep.backends.custom.store import AsyncChatMemoryStore, ChatMemoryStore
from chatkeep.errors import ChatkeepError, ConfigurationError, Outcome, StorageError
from chatkeep.storage.backend import Bridge

WRITES = ("save_all", "append", "delete_by_conversation_id")
POLL_SECONDS = 0.002
"""How often a task looks whether a thread or another event loop has left the store."""

_statements = logging.getLogger("chatkeep.statements")


class Caller(Protocol):
    """Calls one store."""

    bridge: Bridge

    def call(self, verb: str, *arguments: Any) -> Any:
        """The result of a verb; an error that isn't chatkeep's as StorageError."""

    def locked(self, state: StoreState, key: str) -> AbstractContextManager[None]:
        """The conversation, and the store unless it is parallel, for this caller alone in this process."""


class SyncCaller:
    """Calls a ChatMemoryStore in the thread it is in."""

    bridge: Bridge = "thread"

    def __init__(self, name: str, store: ChatMemoryStore) -> None:
        self._name = name
        self._store = store

    def call(self, verb: str, *arguments: Any) -> Any:
        with translated(self._name, verb):
            _statements.debug(verb)
            result = getattr(self._store, verb)(*arguments)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise ConfigurationError(
                f"{type(self._store).__name__}.{verb} must be awaited: derive from AsyncChatMemoryStore"
            )
        return result

    @contextlib.contextmanager
    def locked(self, state: StoreState, key: str) -> Iterator[None]:
        with state.mutex(key):
            yield


class AsyncCaller:
    """Calls an AsyncChatMemoryStore from within the greenlet that the async repository runs a verb in."""

    bridge: Bridge = "greenlet"

    def __init__(self, name: str, store: AsyncChatMemoryStore) -> None:
        from sqlalchemy.util import await_only

        self._name = name
        self._store = store
        self._await: Callable[[Awaitable[Any]], Any] = await_only

    def call(self, verb: str, *arguments: Any) -> Any:
        with translated(self._name, verb):
            _statements.debug(verb)
            awaitable = getattr(self._store, verb)(*arguments)
            if not inspect.isawaitable(awaitable):
                raise ConfigurationError(
                    f"{type(self._store).__name__}.{verb} is no coroutine function: write `async def`"
                )
            return self._await(_settled(awaitable) if verb in WRITES else awaitable)

    @contextlib.contextmanager
    def locked(self, state: StoreState, key: str) -> Iterator[None]:
        loop_lock, mutex = state.loop_lock(key), state.mutex(key)
        self._await(loop_lock.acquire())
        try:
            # Held only where another loop or a synchronous repository is at work in this process.
            while not mutex.acquire(blocking=False):
                self._await(asyncio.sleep(POLL_SECONDS))
            try:
                yield
            finally:
                mutex.release()
        finally:
            loop_lock.release()


async def _settled(write: Awaitable[Any]) -> Any:
    """The result of a write. When the caller is cancelled the write still comes to its end first: it has happened then,
    or never will."""
    task = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):  # cancelled once more: still wait
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio doesn't report it as forgotten
        raise


@contextlib.contextmanager
def translated(name: str, verb: str) -> Iterator[None]:
    """The store's own errors as StorageError; chatkeep's as they are."""
    try:
        yield
    except ChatkeepError:
        raise
    except Exception as exc:
        # Not the text of `exc`: it may quote messages or a password. It is the cause.
        raise StorageError(
            f"the {name} store failed in {verb} with {type(exc).__name__}; the cause says more",
            backend=name,
            outcome=Outcome.UNKNOWN if verb in WRITES else Outcome.NOT_APPLIED,
        ) from exc
