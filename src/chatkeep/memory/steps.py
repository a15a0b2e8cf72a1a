"""How the operations of a memory run in both forms: written once as generators of steps, driven by two small loops.

A step is a prepared call of the repository, a function of the user's (which in the async form may be a coroutine
function), or a pause. The generator is sent each step's result; errors of a step are raised in it.
"""

from __future__ import annotations

import asyncio
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
    send: Callable[[], Step] = steps.__next__
    while True:
        try:
            step = send()
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            value = _done(repository, step)
        except BaseException as error:
            send = _throwing(steps, error)
        else:
            send = _sending(steps, value)


async def run_async(repository: AsyncChatMemoryRepository | None, steps: Steps[T]) -> T:
    """The result of an operation, awaited."""
    send: Callable[[], Step] = steps.__next__
    while True:
        try:
            step = send()
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            value = await _done_async(repository, step)
        except BaseException as error:
            send = _throwing(steps, error)
        else:
            send = _sending(steps, value)


def _sending(steps: Steps[Any], value: Any) -> Callable[[], Step]:
    return lambda: steps.send(value)


def _throwing(steps: Steps[Any], error: BaseException) -> Callable[[], Step]:
    return lambda: steps.throw(error)


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
