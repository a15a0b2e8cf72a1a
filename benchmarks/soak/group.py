"""The workers of one process on one repository: threads on a synchronous one, tasks on an asynchronous one."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from benchmarks.soak.board import Board
from benchmarks.soak.plan import Plan
from benchmarks.soak.tally import Tally
from benchmarks.soak.violation import Finding, Promise
from benchmarks.soak.worker import Worker
from chatkeep import (
    AsyncChatMemoryRepository,
    ChatMemoryRepository,
    open_async_repository,
    open_repository,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Doors:
    """How to open a repository, in both forms. Tests put broken ones here."""

    open: Callable[[], ChatMemoryRepository]
    open_async: Callable[[], Awaitable[AsyncChatMemoryRepository]]

    @classmethod
    def of(cls, url: str) -> Doors:
        return cls(partial(open_repository, url), partial(open_async_repository, url))


@dataclass
class Result:
    """What the workers of one process did and found."""

    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)


def run_group(doors: Doors, board: Board, plan: Plan, numbers: list[int]) -> Result:
    """Works until the time is over or the board says stop."""
    with _quick_switching():
        if plan.asynchronous:
            return asyncio.run(_tasks(doors, board, plan, numbers))
        return _threads(doors, board, plan, numbers)


def directly(repository: ChatMemoryRepository) -> AsyncChatMemoryRepository:
    """A synchronous repository behind methods that can be awaited and never wait."""
    return cast(AsyncChatMemoryRepository, _Direct(repository))


def run_through(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    work.close()
    raise RuntimeError("a call on a synchronous repository waited for an event loop")


@contextlib.contextmanager
def _quick_switching() -> Iterator[None]:
    """Threads take turns more often than usual: more ways to meet, and times that hold less of others' work."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


class _Direct:
    def __init__(self, repository: ChatMemoryRepository) -> None:
        self._repository = repository

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._repository, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            return method(*arguments, **options)

        return call


def _threads(doors: Doors, board: Board, plan: Plan, numbers: list[int]) -> Result:
    with doors.open() as repository:
        workers = [Worker(number, plan, board, directly(repository)) for number in numbers]

        def work(worker: Worker) -> None:
            while board.goes_on():
                if not run_through(worker.step()):
                    board.stop()
            if not board.run.stopped:
                run_through(worker.finish())

        board.wait_for_start()
        # Not a pool's threads: those would keep the process alive where a call never ends.
        threads = [threading.Thread(target=work, args=[worker], daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        result = _result(workers)
        if not result.findings and not board.run.stopped:
            with ThreadPoolExecutor(len(workers)) as pool:
                calls = [pool.submit(repository.count_messages, "nobody") for _ in workers]
                result.findings += _unusable(call.exception() for call in calls)
    return result


async def _tasks(doors: Doors, board: Board, plan: Plan, numbers: list[int]) -> Result:
    async with await doors.open_async() as repository:
        workers = [Worker(number, plan, board, repository) for number in numbers]

        async def work(worker: Worker) -> None:
            while board.goes_on():
                if not await worker.step():
                    board.stop()
                await asyncio.sleep(0)  # an in-process call awaits nothing, and the others want their turn
            if not board.run.stopped:
                await worker.finish()

        board.wait_for_start()
        await asyncio.gather(*map(work, workers))
        result = _result(workers)
        if not result.findings and not board.run.stopped:
            calls = [repository.count_messages("nobody") for _ in workers]
            result.findings += _unusable(await asyncio.gather(*calls, return_exceptions=True))
    return result


def _result(workers: list[Worker]) -> Result:
    result = Result()
    for worker in workers:
        result.tally.add(worker.timed.tally)
        if worker.finding is not None:
            result.findings.append(worker.finding)
    return result


def _unusable(ends: Iterable[object]) -> list[Finding]:
    """As many calls at once as there were workers; an exception among their ends is one too many."""
    return [
        Finding(Promise.POOL, f"after the load a simple read failed: {type(end).__name__}: {end}")
        for end in ends
        if isinstance(end, BaseException)
    ]
