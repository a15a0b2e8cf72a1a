"""`python -m benchmarks`: runs the cases of each backend, prints the table, writes RESULTS.md."""

from __future__ import annotations

import enum
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import (
    cases_cursors,
    cases_export,
    cases_insert_forms,
    cases_memory,
    cases_operations,
    cases_sqlite_async,
    report,
)
from benchmarks.measure import FULL, QUICK, Row, Scale
from benchmarks.places import NoPlaceError, Place, open_place

RESULTS = Path(__file__).with_name("RESULTS.md")
CASES = (
    cases_operations.appends,
    cases_operations.window_read,
    cases_operations.flatness,
    cases_memory.views,
    cases_export.export,
    cases_operations.asynchronous,
    cases_sqlite_async.hops,
    cases_cursors.raw_cursors,
    cases_insert_forms.insert_forms,
)


class Backend(enum.StrEnum):
    sqlite = "sqlite"
    postgresql = "postgresql"
    mysql = "mysql"
    mariadb = "mariadb"


def main(
    backend: Annotated[list[Backend] | None, typer.Option(help="Only these; repeatable. Default: all.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes; the figures are rough.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Where the table is written; by default, if not quick, RESULTS.md beside this.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 where a reach is missed.")] = False,
) -> None:
    """Measure chatkeep beside hand-written code for the same work; on CHATKEEP_TEST_<BACKEND>_URL or a container."""
    console = Console(width=None if Console().is_terminal else 170)
    scale = QUICK if quick else FULL
    began = time.monotonic()
    sections: list[tuple[str, list[Row]]] = []
    skipped: dict[str, str] = {}
    for name in backend or list(Backend):
        try:
            with open_place(name) as place:
                sections.append((place.title, _run(console, place, scale)))
        except NoPlaceError as reason:
            skipped[name] = str(reason)
            console.print(f"{name}: not measured, {reason}")
    console.print(f"{report.machine()}; {time.monotonic() - began:.0f} s in all", highlight=False)
    target = output or (None if quick else RESULTS)
    if target is not None:
        target.write_text(report.markdown(scale, sections, skipped), encoding="utf-8")
        console.print(f"written to {target}", soft_wrap=True)
    missed = [row for _, rows in sections for row in rows if row.missed]
    if missed:
        console.print(f"{len(missed)} of the reaches missed")
    # A backend that was asked for by name and can't be measured has not kept what it promises either.
    if strict and (missed or (backend and skipped)):
        raise typer.Exit(1)


def _run(console: Console, place: Place, scale: Scale) -> list[Row]:
    rows = []
    with console.status(f"{place.title}: storing the conversations") as status:
        cases_operations.prepare(place, scale)
        for case in CASES:
            for row in case(place, scale):
                rows.append(row)
                status.update(f"{place.title}: {row.work}")
    report.show(console, place.title, rows)
    return rows


typer.run(main)
