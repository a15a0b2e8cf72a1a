"""One run from start to verdict: starts the workers, watches them, verifies what they left."""

from __future__ import annotations

import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from benchmarks.soak.board import Board
from benchmarks.soak.group import Doors, Result, directly, run_group, run_through
from benchmarks.soak.plan import Plan
from benchmarks.soak.tally import Tally
from benchmarks.soak.violation import Finding, Promise
from benchmarks.soak.worker import SHARED, Worker

GRACE = 90.0
"""Seconds after the end in which every call must have ended and every worker have verified its own: more than a call
waits for a connection and is then retried."""
START = 60.0
"""Seconds in which every process must have opened its repository."""

Watch = Callable[[Board, float], None]
"""Is told four times a second what has happened, and how many seconds are left."""


@dataclass
class Report:
    """What is left of a run."""

    plan: Plan
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    interrupted: bool = False
    hangs: bool = False
    """Some call never ended, so that this process can't be left in the usual way."""


def soak(plan: Plan, doors: Doors, watch: Watch = lambda board, left: None) -> Report:
    """Runs until the time is over, a promise is broken, or someone interrupts it."""
    report = Report(plan)
    board = Board(plan.workers, SHARED)
    executor, jobs = _begin(plan, doors, board)
    began = time.monotonic()
    try:
        _wait(board, jobs, lambda: board.run.ready == len(jobs), START, "a process did not open its repository")
        began = time.monotonic()
        board.run.until = began + plan.seconds
        _wait(board, jobs, lambda: False, plan.seconds + GRACE, "a call did not end", watch)
    except KeyboardInterrupt:
        report.interrupted = True
    except _HangsError as error:
        report.hangs = True
        report.findings.append(Finding(Promise.ENDS, str(error)))
    except BaseException:
        board.stop()  # or its threads would keep this process alive until their time is over
        raise
    report.seconds = max(0.001, min(plan.seconds, time.monotonic() - began))
    board.stop()
    executor.shutdown(wait=not report.hangs)
    for job in jobs:
        if job.done():
            _collect(job, report)
    if not report.findings and not report.interrupted:
        _verify(plan, doors, board, report)
    report.findings.sort(key=lambda finding: finding.moment)
    return report


class _HangsError(Exception):
    pass


def _begin(plan: Plan, doors: Doors, board: Board) -> tuple[Executor, list[Future[Result]]]:
    groups = plan.groups()
    if len(groups) == 1:
        thread = ThreadPoolExecutor(1)
        return thread, [thread.submit(run_group, doors, board, plan, groups[0])]
    processes = ProcessPoolExecutor(
        len(groups),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin_process,
        initargs=(board,),
    )
    return processes, [processes.submit(_in_process, doors, plan, group) for group in groups]


_boards: list[Board] = []
"""In a worker process: the run's board, which only the start of a process can hand over."""


def _begin_process(board: Board) -> None:
    # Ctrl-C reaches the whole group of processes; the first one decides, and tells the others through the board.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _boards.append(board)


def _in_process(doors: Doors, plan: Plan, numbers: list[int]) -> Result:
    return run_group(doors, _boards[0], plan, numbers)


def _wait(
    board: Board,
    jobs: list[Future[Result]],
    enough: Callable[[], bool],
    patience: float,
    otherwise: str,
    watch: Watch | None = None,
) -> None:
    """Until it is enough or all jobs have ended; `otherwise` says what it means when the time runs out."""
    ends = time.monotonic() + patience
    while not enough():
        done, running = wait(jobs, timeout=0.05 if watch is None else 0.25)
        if any(job.exception() for job in done):
            board.stop()
        if not running:
            return
        if time.monotonic() > ends:
            longest = ", ".join(f"worker {worker} {seconds:.0f} s" for worker, seconds in board.under_way().items())
            raise _HangsError(f"{otherwise} within {patience:.0f} s; in a call since: {longest or 'nobody'}")
        if watch is not None:
            watch(board, board.run.until - time.monotonic())


def _collect(job: Future[Result], report: Report) -> None:
    try:
        result = job.result()
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        report.findings.append(Finding(Promise.ERRORS, f"{type(error).__name__}: {error}", trace=trace))
    else:
        report.tally.add(result.tally)
        report.findings += result.findings


def _verify(plan: Plan, doors: Doors, board: Board, report: Report) -> None:
    """The shared conversations as a whole, by one more reader with connections of its own."""
    with doors.open() as repository:
        reader = Worker(plan.workers, plan, board, directly(repository))
        run_through(reader.verify_shared())
    report.tally.add(reader.timed.tally)
    if reader.finding is not None:
        report.findings.append(reader.finding)
