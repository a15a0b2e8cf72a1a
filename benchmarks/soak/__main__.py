"""`python -m benchmarks.soak`: the contract under load, on one backend."""

from __future__ import annotations

import enum
import faulthandler
import multiprocessing
import os
import random
import shlex
import sys
import time
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.soak import report
from benchmarks.soak.board import MOST_WORKERS, Board
from benchmarks.soak.group import Doors
from benchmarks.soak.places import BACKENDS, NoPlaceError, Place, open_place
from benchmarks.soak.plan import Plan
from benchmarks.soak.run import Report, Watch, soak
from benchmarks.soak.violation import Finding, Promise
from chatkeep import ConfigurationError, open_repository

FAILED, NOT_RUN, INTERRUPTED = 1, 2, 130
Backend = enum.StrEnum("Backend", {name: name for name in BACKENDS})  # type: ignore[misc]
SQLITE = Backend("sqlite")


def main(
    backend: Annotated[Backend, typer.Option(help="Which one.")] = SQLITE,
    url: Annotated[
        str | None, typer.Option(help="The administrator's URL of a server; by default the server of the tests.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long; the verification at the end comes on top.")] = 120,
    workers: Annotated[int, typer.Option(min=1, max=MOST_WORKERS, help="Threads, or tasks.")] = 16,
    processes: Annotated[int, typer.Option(min=1, help="Spread the workers over so many processes.")] = 1,
    asynchronous: Annotated[bool, typer.Option("--asynchronous", help="Tasks, on the asynchronous form.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of what the workers do; by default a new one.")] = None,
    kill: Annotated[
        float | None, typer.Option(min=0.5, help="End all its sessions on the server every so many seconds.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the repository, such as pool_size=4; repeatable.")
    ] = None,
) -> None:
    """Read and write the same conversations from many workers, and judge every read by the contract.

    Exit code 0 if every promise was kept, 1 if one was broken, 2 if there is no such server, 130 after Ctrl-C.
    """
    name = backend.value
    console = Console(width=None if Console().is_terminal else 150)
    plan = Plan(
        seconds=seconds,
        workers=workers,
        seed=random.randrange(2**31) if seed is None else seed,
        asynchronous=asynchronous,
        processes=min(processes, workers),
    )
    options = dict(_pair(text) for text in option or [])
    title = f"{name}, {workers} {'tasks' if asynchronous else 'threads'}"
    title += f" in {plan.processes} processes" if plan.processes > 1 else ""
    try:
        with open_place(name, url, options) as place:
            if plan.processes > 1 and not place.shared_between_processes:
                raise NoPlaceError(f"{name} can't be shared between processes")
            if kill and (reason := place.why_no_kill()):
                raise NoPlaceError(f"--kill: {reason}")
            open_repository(place.url).close()  # says what is wrong with an option before anything begins
            console.print(f"{title}, {seconds:g} s, seed {plan.seed}", highlight=False)
            with console.status(title) as status:
                line = report.Line(status, title, seconds)
                outcome = _run(plan, place, _killing(place, kill, line) if kill else line)
            report.show(console, outcome, _repeat(plan, name, kill, options))
            if outcome.hangs:
                _leave_at_once()
    except (NoPlaceError, ConfigurationError) as missing:
        console.print(f"{name}: not run, {missing}", markup=False)
        raise typer.Exit(NOT_RUN) from None
    if outcome.findings:
        raise typer.Exit(FAILED)
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)


def _run(plan: Plan, place: Place, watch: Watch) -> Report:
    outcome = soak(plan, Doors.of(place.url), watch)
    if not outcome.hangs and (left := place.left_open()):
        outcome.findings.append(Finding(Promise.POOL, f"after everything was closed there is still {left}"))
    return outcome


def _killing(place: Place, every: float, line: Watch) -> Watch:
    """The line, and a fault now and then: calls are retried inside, or raise errors whose outcome must be true."""
    due = time.monotonic() + every

    def watch(board: Board, left: float) -> None:
        nonlocal due
        if left > 0 and time.monotonic() > due:
            place.kill_sessions()
            due = time.monotonic() + every
        line(board, left)

    return watch


def _repeat(plan: Plan, backend: str, kill: float | None, options: dict[str, str]) -> str:
    """The command; without the URL, which holds a password. The seed fixes the work, not who comes first."""
    words = ["python", "-m", "benchmarks.soak", "--backend", backend, "--seconds", f"{plan.seconds:g}"]
    words += ["--workers", str(plan.workers), "--seed", str(plan.seed)]
    words += ["--processes", str(plan.processes)] if plan.processes > 1 else []
    words += ["--asynchronous"] if plan.asynchronous else []
    words += ["--kill", f"{kill:g}"] if kill else []
    return shlex.join(words + [f"--option={name}={value}" for name, value in options.items()])


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise typer.BadParameter(f"expected name=value, got {text!r}", param_hint="--option")
    return name, value


def _leave_at_once() -> None:
    """With calls that never end, neither threads nor processes can be waited for. The namespace stays, named test_…"""
    faulthandler.dump_traceback(all_threads=True)
    for child in multiprocessing.active_children():
        child.kill()
    sys.stdout.flush()
    os._exit(FAILED)


if __name__ == "__main__":
    typer.run(main)
