"""How the operations of a memory run in both forms: written once as generators of steps, driven by two small loops.

A step is a prepared call of the repository, a function of the user's (which in the async form may be a coroutine
function), or a pause. The generator is sent each step's result; errors of a step are raised in it.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.runner import Call

T = TypeVar("T")


class Ask:
    """A call of a function that the user gave."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function = function
        self.arguments = arguments


class Pause:
    """Some seconds in which others may get on."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


Step: TypeAlias = "Call[Any] | Ask | Pause"
Steps: TypeAlias = Generator[Step, Any, T]


def run(repository: ChatMemoryRepository | None, steps: Steps[T]) -> T:
    """The result of an operation, in the caller's thread."""
    go_on: Callable[[], Step] = functools.partial(next, steps)
    while True:
        try:
            step = go_on()
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            go_on = functools.partial(steps.send, _done(repository, step))
        except BaseException as error:
            go_on = functools.partial(steps.throw, error)


async def run_async(repository: AsyncChatMemoryRepository | None, steps: Steps[T]) -> T:
    """The result of an operation, awaited."""
    go_on: Callable[[], Step] = functools.partial(next, steps)
    while True:
        try:
            step = go_on()
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            go_on = functools.partial(steps.send, await _done_async(repository, step))
        except BaseException as error:
            go_on = functools.partial(steps.throw, error)


def _done(repository: ChatMemoryRepository | None, step: Step) -> Any:
    if isinstance(step, Call):
        assert repository is not None, "these steps hold no calls of a repository"
        return repository._run(step)
    if isinstance(step, Pause):
        time.sleep(step.seconds)
        return None
    value = step.function(*step.arguments)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        name = getattr(step.function, "__name__", type(step.function).__name__)
        raise TypeError(f"{name} is asynchronous; use the Async… form of the memory, or give a plain function")
    return value


async def _done_async(repository: AsyncChatMemoryRepository | None, step: Step) -> Any:
    if isinstance(step, Call):
        assert repository is not None, "these steps hold no calls of a repository"
        return await repository._run(step)
    if isinstance(step, Pause):
        await asyncio.sleep(step.seconds)
        return None
    value = step.function(*step.arguments)
    return await value if inspect.isawaitable(value) else value
