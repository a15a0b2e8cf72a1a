"""What a person sees of a run: a line while it lasts, a table of operations, a verdict."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status
from rich.table import Table

from benchmarks.measure import duration
from benchmarks.soak.board import Board
from benchmarks.soak.run import Report
from benchmarks.soak.violation import Finding

HEADINGS = ("operation", "count", "per second", "p50", "p99", "longest", "errors")
MOST_FINDINGS = 5


class Line:
    """The live line; on anything but a terminal rich shows nothing of it."""

    def __init__(self, status: Status, title: str, seconds: float) -> None:
        self._status, self._title, self._seconds = status, title, seconds

    def __call__(self, board: Board, left: float) -> None:
        operations, errors = sum(board.run.operations), sum(board.run.errors)
        passed = max(0.001, self._seconds - left)
        self._status.update(
            f"{self._title}: {passed:.0f} of {self._seconds:.0f} s, {operations:,} calls, "
            f"{operations / passed:,.0f}/s, {errors} errors"
            if left > 0
            else f"{self._title}: verifying what was left"
        )


def show(console: Console, report: Report, repeat: str) -> None:
    """The table and the verdict."""
    table = Table()
    table.add_column(HEADINGS[0])
    for heading in HEADINGS[1:-1]:
        table.add_column(heading, justify="right")
    table.add_column(HEADINGS[-1])
    for operation, times in sorted(report.tally.times.items()):
        median, high = times.percentiles()
        table.add_row(
            operation,
            f"{times.count:,}",
            f"{times.count / report.seconds:,.0f}",
            duration(median),
            duration(high),
            duration(times.longest),
            ", ".join(
                f"{count} {kind}" for (of, kind), count in sorted(report.tally.errors.items()) if of == operation
            ),
        )
    console.print(table)
    calls = sum(times.count for times in report.tally.times.values())
    console.print(
        f"{calls:,} calls in {report.seconds:.0f} s by {report.plan.workers} workers, seed {report.plan.seed}"
    )
    for finding in report.findings[:MOST_FINDINGS]:
        _explain(console, finding)
    if report.findings:
        rest = len(report.findings) - MOST_FINDINGS
        if rest > 0:
            console.print(f"and {rest} more")
        console.print(f"to repeat: {repeat}", soft_wrap=True, markup=False, highlight=False)
        _say(console, f"FAILED: {report.findings[0].promise}", "bold red")
    elif report.interrupted:
        _say(console, "interrupted: what was read until then was right", "bold yellow")
    else:
        _say(console, "PASSED", "bold green")


def _errors(report: Report, operation: str) -> str:
    return ", ".join(f"{count} {kind}" for (of, kind), count in sorted(report.tally.errors.items()) if of == operation)


def _explain(console: Console, finding: Finding) -> None:
    where = f"conversation {finding.conversation}, " if finding.conversation else ""
    who = "" if finding.worker is None else f"seen by worker {finding.worker}: "
    _say(console, f"broken: {finding.promise}", "red")
    _say(console, f"  {where}{who}{finding.text}")
    if finding.trace:
        _say(console, finding.trace.rstrip())


def _say(console: Console, text: str, style: str = "") -> None:
    # Texts come from errors and ids: nothing in them is markup.
    console.print(text, style=style, soft_wrap=True, markup=False, highlight=False)
