"""A progress bar on standard error, for a person who waits there; silent everywhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from chatkeep.cli import output

Advance = Callable[[int, str], None]
"""Told how far it is, in the unit of the total, and what to say beside the bar."""


def wanted(*, data_on_stdout: bool) -> bool:
    """Whether a bar can be shown. Not beside data that goes to the terminal, be it through `| head`."""
    return output.is_terminal(sys.stderr) and not (data_on_stdout and not output.is_file(sys.stdout))


@contextlib.contextmanager
def bar(what: str, total: int | None, *, shown: bool) -> Iterator[Advance]:
    """A bar that disappears when done."""
    if not shown:
        yield lambda done, text: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[text]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=output.console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task(what, total=total, text="")
        yield lambda done, text: progress.update(task, completed=done, text=text)
