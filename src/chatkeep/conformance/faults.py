"""Failures at the seam between runner and backend, which every backend has: a lost reply, a passing contention.

Faults of the engine itself are abilities of the harness.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from chatkeep import ChatMemoryRepository, Outcome, StorageConnectionError
from chatkeep.errors import StorageError


@contextlib.contextmanager
def reply_lost(repository: ChatMemoryRepository, verb: str) -> Iterator[list[str]]:
    """Within the context, the first call of the backend's `verb` happens, and then its reply is lost.

    Yields what happened: "lost" for it, "done" for each call after it.
    """
    backend = repository._calls.backend
    real = getattr(backend, verb)
    happened: list[str] = []

    def losing(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        happened.append("done" if happened else "lost")
        if happened == ["lost"]:
            raise StorageConnectionError("the reply was lost", backend=backend.name, outcome=Outcome.UNKNOWN)
        return result

    setattr(backend, verb, losing)
    try:
        yield happened
    finally:
        delattr(backend, verb)


@contextlib.contextmanager
def failing_first(repository: ChatMemoryRepository, verb: str, error: StorageError, times: int) -> Iterator[list[int]]:
    """Within the context, the backend's `verb` fails so many times before it does anything; yields a list of tries."""
    backend = repository._calls.backend
    real = getattr(backend, verb)
    tries: list[int] = []

    def failing(*arguments: Any, **options: Any) -> Any:
        tries.append(len(tries))
        if len(tries) <= times:
            raise error
        return real(*arguments, **options)

    setattr(backend, verb, failing)
    try:
        yield tries
    finally:
        delattr(backend, verb)
