"""migrate, status, validate, sql and repair: the command line over chatkeep.migrations.runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chatkeep.cli import output
from chatkeep.cli.given import Debug, Owner, Url, given, place
from chatkeep.cli.text import local, one_line

if TYPE_CHECKING:
    from chatkeep.config import Settings

LockTimeout = Annotated[
    str | None,
    typer.Option("--lock-timeout", metavar="DURATION", help="How long to wait for another migration: 30s, 5m."),
]
Vectors = Annotated[
    bool, typer.Option("--vectors", help="The optional tables of vectors (see docs/vectors.md), not the others.")
]
_COLOURS = {"applied": "green", "applied by hand": "green", "pending": "yellow"}


def migrate(
    ctx: typer.Context,
    lock_timeout: LockTimeout = None,
    vectors: Vectors = False,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Bring the database's tables to the version of this package, step by step. Safe to repeat."""
    from chatkeep.migrations import runner

    here = given(ctx, url, owner, debug)
    settings = here.settings()
    seconds = _seconds(lock_timeout, runner.LOCK_SECONDS)
    with here.target(settings, reading=False, vectors=vectors) as target:
        if target is None:
            _say_no_schema(settings, vectors)
            return
        runner.migrate(target, lock_timeout=seconds, progress=_print_step)


def status(
    ctx: typer.Context, vectors: Vectors = False, url: Url = None, owner: Owner = None, debug: Debug = False
) -> None:
    """List every step with its state: applied, pending, edited, failed. Changes nothing."""
    from chatkeep.migrations import runner

    here = given(ctx, url, owner, debug)
    settings = here.settings()
    with here.target(settings, reading=True, vectors=vectors) as target:
        if target is None:
            _say_no_schema(settings, vectors)
            return
        steps = runner.status(target)
    if output.is_terminal(_stdout()):
        _print_table(steps, place(settings))
        return
    for step in steps:
        when = step.applied.applied_at.isoformat() if step.applied else ""
        output.line("\t".join((f"{step.version:04d}", one_line(step.description), when, step.state.value)))


def validate(
    ctx: typer.Context, vectors: Vectors = False, url: Url = None, owner: Owner = None, debug: Debug = False
) -> None:
    """Check that the tables have exactly the version of this package; exit 1 with the next step if not."""
    from chatkeep.migrations import runner

    here = given(ctx, url, owner, debug)
    settings = here.settings()
    with here.target(settings, reading=True, vectors=vectors) as target:
        if target is None:
            _say_no_schema(settings, vectors)
            return
        runner.validate(target)
        done = [step for step in runner.status(target) if step.applied]
    output.line(f"{place(settings)}: the tables are at version {max(step.version for step in done)}, as they should be")


def sql(
    ctx: typer.Context,
    whole: Annotated[
        bool, typer.Option("--all", help="All steps from nothing on, whatever is applied; never connects.")
    ] = False,
    vectors: Vectors = False,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Print what `migrate` would run, to read it or to pipe it into psql, mysql or sqlite3.

    With --all the URL may be no more than its scheme: chatkeep sql --all --url postgresql:
    """
    from chatkeep.migrations import runner
    from chatkeep.migrations.files import schema_files, vector_directory

    here = given(ctx, url, owner, debug)
    settings = here.settings()
    if (settings.plugin.vector_migrations if vectors else settings.plugin.migrations) is None:
        _say_no_schema(settings, vectors)
        return
    if whole:
        name = settings.plugin.name
        text = runner.pending_sql(name, schema_files(name, vector_directory(name)) if vectors else None)
    else:
        with here.target(settings, reading=True, vectors=vectors) as target:
            assert target is not None
            text = runner.pending_sql(target)
    output.write(text.encode())
    if not text:
        output.note(f"{place(settings)}: nothing to run, all steps are applied")


def repair(
    ctx: typer.Context,
    completed: Annotated[
        bool, typer.Option("--completed", help="The rest of the step was run by hand: count it as applied.")
    ] = False,
    lock_timeout: LockTimeout = None,
    vectors: Vectors = False,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Settle a step that began and did not end, after you have looked at what it left.

    Without --completed its traces must have been undone by hand; the next `migrate` then runs it again.
    """
    from chatkeep.migrations import runner

    here = given(ctx, url, owner, debug)
    settings = here.settings()
    seconds = _seconds(lock_timeout, runner.LOCK_SECONDS)
    with here.target(settings, reading=True, vectors=vectors) as target:
        if target is None:
            _say_no_schema(settings, vectors)
            return
        names = runner.repair(target, completed=completed, lock_timeout=seconds)
    if not names:
        output.line(f"{place(settings)}: no step has failed, nothing to repair")
    for name in names:
        output.line(f"{name}: " + ("counts as applied by hand" if completed else "will run again with `migrate`"))


def _print_step(text: str) -> None:
    output.line(one_line(text))
    _stdout().flush()


def _print_table(steps: list[Any], title: str) -> None:
    from rich.table import Table
    from rich.text import Text

    output.line(one_line(title))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("version", "description", "applied", "state"):
        table.add_column(name)
    for step in steps:
        state = step.state.value
        when = local(step.applied.applied_at) if step.applied else ""
        table.add_row(
            f"{step.version:04d}", Text(one_line(step.description)), when, Text(state, _COLOURS.get(state, "bold red"))
        )
    output.console().print(table)


def _say_no_schema(settings: Settings, vectors: bool) -> None:
    what = "tables of vectors" if vectors else "schema"
    output.note(f"the {settings.plugin.name} backend has no {what}: nothing to do")


def _seconds(text: str | None, default: float) -> float:
    from chatkeep.config import parse_seconds

    if text is None:
        return default
    try:
        return float(parse_seconds(text))
    except ValueError as exc:
        raise typer.BadParameter(str(exc), param_hint="--lock-timeout") from exc


def _stdout() -> Any:
    import sys

    return sys.stdout
