"""The async repository, cancelled at each of its awaits in turn: complete, where test_cancellation.py tries moments.

A task factory runs every coroutine of the loop under a counter. When the call under test is about to wait for the n-th
time, in whichever of its tasks, it is cancelled there; n goes up until the call ends before it waits so often.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from chatkeep import AsyncChatMemoryRepository, Message, open_async_repository
from tests.conformance.relational_harness import RelationalHarness


class Points:
    """Counts the waits of one call, and of all tasks that it starts, and cancels it at one of them."""

    def __init__(self) -> None:
        self._call: asyncio.Task[Any] | None = None
        self._inside: set[asyncio.Task[Any]] = set()
        self._left = 0
        asyncio.get_running_loop().set_task_factory(self._made)

    async def cancel_at(self, number: int, call: Coroutine[Any, Any, Any]) -> bool:
        """Whether the call came to its n-th wait. Then it must end as cancelled, else as it should."""
        self._left = number
        self._call = asyncio.create_task(call)
        self._inside = {self._call}
        await asyncio.wait([self._call])
        self._inside = set()
        if self._left > 0:
            await self._call
            return False
        assert self._call.cancelled(), self._call
        return True

    def _made(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(_Watched(coroutine, self._waits), loop=loop, **options)
        if asyncio.current_task(loop) in self._inside:
            self._inside.add(task)
        return task

    def _waits(self) -> None:
        if asyncio.current_task() in self._inside and self._left > 0:
            self._left -= 1
            if self._left == 0 and self._call is not None:
                self._call.cancel()


class _Watched(Coroutine[Any, Any, Any]):
    """A coroutine, with a call each time that it is about to wait."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits: Callable[[], None]) -> None:
        self._coroutine = coroutine
        self._waits = waits

    def send(self, value: Any) -> Any:
        future = self._coroutine.send(value)
        self._waits()
        return future

    def throw(self, *error: Any) -> Any:
        future = self._coroutine.throw(*error)
        self._waits()
        return future

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self._coroutine.__await__())


NEW = [Message.user("question", id="q"), Message.assistant("answer", id="a")]
CALLS: dict[str, tuple[Callable[[AsyncChatMemoryRepository], Coroutine[Any, Any, Any]], list[str]]] = {
    "append": (lambda repository: repository.append("c", NEW), ["old", "question", "answer"]),
    "first append": (lambda repository: repository.append("new", NEW), ["question", "answer"]),
    "save_all": (lambda repository: repository.save_all("c", NEW), ["question", "answer"]),
    "delete": (lambda repository: repository.delete_by_conversation_id("c"), []),
    "read": (lambda repository: repository.find_by_conversation_id("c"), ["old"]),
}
"""By name: the call, and what is stored when it has happened."""


@pytest.mark.asyncio
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_on_an_open_connection(harness: RelationalHarness, url: str, call: str) -> None:
    """One connection, and an observer with its own: a transaction left open would be visible to the next call alone."""
    async with await open_async_repository(url, pool_size=1, pool_timeout="5s") as repository:

        @contextlib.asynccontextmanager
        async def connected() -> AsyncIterator[AsyncChatMemoryRepository]:
            await repository.count_messages("c")
            yield repository

        waits = await _cancelled_everywhere(url, call, connected)
    assert waits >= (2 if harness.expected_capabilities.native_async else 1), "a driver has more waits than a thread"


@pytest.mark.asyncio
@pytest.mark.parametrize("call", ["append", "read"])
async def test_a_call_that_opens_its_connection(harness: RelationalHarness, url: str, call: str) -> None:
    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[AsyncChatMemoryRepository]:
        async with await open_async_repository(url, schema="ignore", pool_size=1, pool_timeout="5s") as repository:
            yield repository

    waits = await _cancelled_everywhere(url, call, opened)
    assert waits >= (5 if harness.expected_capabilities.native_async else 1)


async def _cancelled_everywhere(
    url: str, call: str, opened: Callable[[], AbstractAsyncContextManager[AsyncChatMemoryRepository]]
) -> int:
    """How often the call waits. After each cancellation it has happened as a whole or not at all, now and later."""
    make, expected = CALLS[call]
    name = "new" if call == "first append" else "c"
    before = [] if call == "first append" else ["old"]
    points = Points()
    async with await open_async_repository(url, schema="ignore") as observer:
        for number in itertools.count(1):
            await observer.save_all("c", [Message.user("old")])
            await observer.delete_by_conversation_id("new")
            async with opened() as repository:
                reached = await points.cancel_at(number, make(repository))
                found = await _texts(observer, name)
                assert found in ([before, expected] if reached else [expected]), f"cancelled at wait {number}"
                # What the next call acknowledges must be committed, and not lie in a transaction left open before it.
                await repository.append("next", Message.user(f"{number}"))
                assert await observer.count_messages("next") == number
                assert await _texts(observer, name) == found, "it happened after its cancellation had arrived"
            if not reached:
                return number - 1
    raise AssertionError


async def _texts(repository: AsyncChatMemoryRepository, name: str) -> list[str]:
    return [message.text for message in await repository.find_by_conversation_id(name)]
