"""Retries, outcomes, and the ways in which a call is run: in place, in a greenlet, in a thread."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.util import await_only

from chatkeep import (
    ConcurrentChangeError,
    ContentionError,
    InvalidMessageError,
    Outcome,
    SchemaError,
    StorageCapacityError,
    StorageConnectionError,
    StorageError,
    StorageTimeoutError,
)
from chatkeep.backends.inprocess.space import Space
from chatkeep.backends.inprocess.store import InProcessBackend
from chatkeep.storage.runner import (
    AsyncRunner,
    Call,
    GreenletRunner,
    SyncRunner,
    ThreadRunner,
    async_runner,
    run_with_retries,
)

NOT_APPLIED, UNKNOWN = Outcome.NOT_APPLIED, Outcome.UNKNOWN


class Script:
    """Raises what it is given, one after the other, then answers; remembers what `again` was."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.again: list[bool] = []

    def __call__(self, again: bool) -> str:
        self.again.append(again)
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def run(script: Script, *, repeatable: bool, seconds: float = 5.0) -> str:
    return run_with_retries(Call(script, repeatable=repeatable), lambda _: None, seconds)


@pytest.mark.parametrize("kind", [ContentionError, StorageConnectionError])
@pytest.mark.parametrize("repeatable", [True, False])
def test_contention_and_broken_connections_are_retried(kind: type[StorageError], repeatable: bool) -> None:
    script = Script(*(kind("x") for _ in range(5)))
    assert run(script, repeatable=repeatable) == "done"
    assert script.again == [False] * 6


@pytest.mark.parametrize("kind", [ContentionError, StorageConnectionError])
def test_an_unknown_outcome_is_retried_where_repeating_is_safe_and_then_told(kind: type[StorageError]) -> None:
    script = Script(kind("x"), kind("x", outcome=UNKNOWN), kind("x"))
    assert run(script, repeatable=True) == "done"
    # Once it may have landed, every later try must know.
    assert script.again == [False, False, True, True]


@pytest.mark.parametrize("kind", [ContentionError, StorageConnectionError])
def test_an_unknown_outcome_is_not_retried_where_repeating_is_not_safe(kind: type[StorageError]) -> None:
    error = kind("x", outcome=UNKNOWN)
    script = Script(kind("first"), error)
    with pytest.raises(kind) as caught:
        run(script, repeatable=False)
    assert caught.value is error
    assert script.again == [False, False]


@pytest.mark.parametrize(
    "error",
    [
        StorageError("x"),
        StorageTimeoutError("x"),
        StorageTimeoutError("x", outcome=UNKNOWN),
        StorageCapacityError("x"),
        SchemaError("x"),
        InvalidMessageError("x"),
        ConcurrentChangeError("c", expected=1, actual=2),
        ValueError("x"),
        KeyboardInterrupt(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_nothing_else_is_retried(error: BaseException) -> None:
    for before in ([], [ContentionError("x")]):
        script = Script(*before, error)
        with pytest.raises(type(error)) as caught:
            run(script, repeatable=True)
        assert caught.value is error
        assert len(script.again) == len(before) + 1


def test_an_outcome_that_was_once_unknown_stays_unknown() -> None:
    script = Script(StorageConnectionError("x", outcome=UNKNOWN), *(ContentionError("x") for _ in range(1000)))
    with pytest.raises(ContentionError) as caught:
        run_with_retries(Call(script, repeatable=True), time.sleep, 0.05)
    assert caught.value.outcome is UNKNOWN
    for last in (StorageTimeoutError("x"), StorageError("x")):
        with pytest.raises(StorageError) as other:
            run(Script(ContentionError("x", outcome=UNKNOWN), last), repeatable=True)
        assert other.value.outcome is UNKNOWN


def test_an_outcome_that_was_never_unknown_stays_not_applied() -> None:
    with pytest.raises(StorageTimeoutError) as caught:
        run(Script(ContentionError("x"), StorageTimeoutError("x")), repeatable=True)
    assert caught.value.outcome is NOT_APPLIED


def test_retries_end_and_wait_longer_and_at_random() -> None:
    def tries() -> tuple[list[float], int]:
        waits: list[float] = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            time.sleep(seconds / 20)

        script = Script(*(ContentionError("busy") for _ in range(10_000)))
        with pytest.raises(ContentionError, match="busy"):
            run_with_retries(Call(script, repeatable=True), sleep, 0.3)
        return waits, len(script.again)

    began = time.monotonic()
    one, count = tries()
    two, _ = tries()
    assert time.monotonic() - began < 5
    assert count > 3
    assert max(one) > 2 * one[0]
    assert max(one + two) <= 1.0
    assert one != two, "waits without jitter keep writers in step"


def test_the_first_try_waits_for_nothing() -> None:
    def sleep(_: float) -> None:
        raise AssertionError("slept")

    assert run_with_retries(Call(Script(), repeatable=True), sleep, 1.0) == "done"


def test_the_synchronous_runner_runs_in_the_callers_thread() -> None:
    runner = SyncRunner()
    assert runner.run(Call(lambda _: threading.current_thread(), repeatable=True)) is threading.current_thread()
    assert runner.run(Call(Script(ContentionError("x")), repeatable=True)) == "done"


@pytest.mark.parametrize(
    ("bridge", "kind"), [("greenlet", GreenletRunner), ("thread", ThreadRunner), ("inline", AsyncRunner)]
)
def test_the_bridge_of_a_backend_chooses_the_runner(bridge: Any, kind: type[AsyncRunner]) -> None:
    backend = InProcessBackend(Space())
    backend.bridge = bridge
    runner = async_runner(backend, 3.0)
    assert type(runner) is kind
    assert runner.retry_seconds == 3.0
    runner.close()


RUNNERS: list[Callable[[], AsyncRunner]] = [AsyncRunner, GreenletRunner, ThreadRunner]


@pytest.mark.asyncio
@pytest.mark.parametrize("make", RUNNERS)
async def test_every_asynchronous_runner_answers_raises_and_retries(make: Callable[[], AsyncRunner]) -> None:
    runner = make()
    try:
        assert await runner.run(Call(lambda _: 42, repeatable=True)) == 42
        with pytest.raises(InvalidMessageError):
            await runner.run(Call(Script(InvalidMessageError("x")), repeatable=True))
        script = Script(ContentionError("x"), StorageConnectionError("x", outcome=UNKNOWN))
        assert await runner.run(Call(script, repeatable=True)) == "done"
        assert script.again == [False, False, True]
    finally:
        runner.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("make", [GreenletRunner, ThreadRunner])
async def test_a_retry_blocks_no_other_task(make: Callable[[], AsyncRunner]) -> None:
    runner = make()
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    task = asyncio.create_task(other())
    await runner.run(Call(Script(*(ContentionError("x") for _ in range(5))), repeatable=True))
    task.cancel()
    runner.close()
    assert turns >= 3


@pytest.mark.asyncio
async def test_the_greenlet_runner_awaits_inside_of_a_call() -> None:
    loop = asyncio.get_running_loop()

    def work(_: bool) -> bool:
        await_only(asyncio.sleep(0.001))
        return asyncio.get_running_loop() is loop

    assert await GreenletRunner().run(Call(work, repeatable=True))


@pytest.mark.asyncio
async def test_a_cancelled_call_in_a_greenlet_stops_where_it_awaits() -> None:
    steps: list[str] = []

    def work(_: bool) -> None:
        steps.append("begun")
        try:
            await_only(asyncio.sleep(60))
        finally:
            steps.append("cleaned up")
        steps.append("went on")

    task = asyncio.create_task(GreenletRunner().run(Call(work, repeatable=True)))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["begun", "cleaned up"]


class Blocking:
    """Work that waits in its thread until the test lets it go on."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.error = error
        self.done = False

    def __call__(self, again: bool) -> str:
        self.begun.set()
        assert self.go_on.wait(10)
        self.done = True
        if self.error:
            raise self.error
        return "done"

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 10)


@pytest.mark.asyncio
@pytest.mark.parametrize("error", [None, StorageTimeoutError("x")], ids=["answers", "fails"])
async def test_a_call_that_is_cancelled_in_its_thread_is_over_before_the_cancellation_arrives(
    error: Exception | None,
) -> None:
    runner, work = ThreadRunner(), Blocking(error)
    task = asyncio.create_task(runner.run(Call(work, repeatable=False)))
    await work.has_begun()
    for _ in range(3):  # cancelled again while it waits: it waits on
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
    work.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.done
    runner.close()


@pytest.mark.asyncio
async def test_a_call_that_is_cancelled_before_a_thread_takes_it_never_happens() -> None:
    runner, first, second = ThreadRunner(threads=1), Blocking(), Blocking()
    running = asyncio.create_task(runner.run(Call(first, repeatable=False)))
    await first.has_begun()
    waiting = asyncio.create_task(runner.run(Call(second, repeatable=False)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.go_on.set()
    assert await running == "done"
    assert await runner.run(Call(lambda _: second.begun.is_set(), repeatable=False)) is False
    runner.close()


@pytest.mark.asyncio
async def test_calls_run_side_by_side_in_threads() -> None:
    runner, works = ThreadRunner(), [Blocking() for _ in range(4)]
    tasks = [asyncio.create_task(runner.run(Call(work, repeatable=False))) for work in works]
    for work in works:
        await work.has_begun()
    for work in works:
        work.go_on.set()
    assert await asyncio.gather(*tasks) == ["done"] * 4
    runner.close()
