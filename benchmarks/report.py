"""The table on the terminal and RESULTS.md. Measures nothing but one fsync."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterable
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

from benchmarks.measure import BLOCKS, Row, Scale, duration

HEADINGS = ("work", "reference", "measured", "ratio", "p10 to p90", "reach", "rounds")


def show(console: Console, title: str, rows: list[Row]) -> None:
    table = Table(*HEADINGS, title=title, title_justify="left")
    for row in rows:
        table.add_row(*cells(row), style="red" if row.missed else None)
    console.print(table)


def cells(row: Row) -> tuple[str, ...]:
    return (
        row.work,
        row.reference,
        row.measured,
        _number(row.ratio, row.unit),
        "" if row.spread is None else f"{row.spread[0]:.2f} to {row.spread[1]:.2f}",
        "" if row.reach is None else f"{'MISSED' if row.missed else 'ok'}, <= {_number(row.reach, row.unit)}",
        f"{row.rounds:,}",
    )


def _number(value: float, unit: str) -> str:
    return f"{value:.2f}{unit}" if unit == "x" else f"{value:.0f}{unit}"


def markdown(scale: Scale, sections: list[tuple[str, list[Row]]], skipped: Iterable[str]) -> str:
    lines = [
        "# Benchmark results",
        "",
        "<!-- Written by `python -m benchmarks` (`make bench`); don't edit. -->",
        "",
        f"Measured on {dt.datetime.now(dt.UTC):%Y-%m-%d}: {machine()}.",
        "",
        "Only the ratios mean anything elsewhere; the times are of this machine. The two sides of a row take turns "
        f"within one run (A B, B A, …) for about {scale.seconds:g} s, cut into {BLOCKS} blocks. Times are medians of "
        "all rounds; the ratio is the median of the blocks' ratios, with their 10th and 90th percentile. A row without "
        "a reach only informs. What the references do is in `handwritten*.py` beside this file.",
    ]
    for title, rows in sections:
        lines += ["", f"## {title}", "", _line(HEADINGS), "|" + "---|" * len(HEADINGS)]
        lines += [_line(cells(row)) for row in rows]
    # Without the reason, which may name a host; the terminal has it.
    lines += [line for backend in skipped for line in ("", f"## {backend}", "", "Not measured in this run.")]
    return "\n".join(lines) + "\n"


def machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join(f"{name} {version(name)}" for name in ("SQLAlchemy", "psycopg", "PyMySQL", "msgspec"))
    return (
        f"{platform.system()} {platform.machine()} with {cores} cores, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {versions}; an fsync of one page takes {duration(_fsync_seconds())}"
    )


def _fsync_seconds() -> float:
    """What a durable commit waits for at least, where the SQLite files are."""
    times = []
    with tempfile.TemporaryFile() as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _line(values: tuple[str, ...]) -> str:
    return "| " + " | ".join(values) + " |"
