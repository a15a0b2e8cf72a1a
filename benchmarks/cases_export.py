"""The export streams: its memory does not grow with what it exports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cases_operations import export_id
from benchmarks.measure import Row, Scale
from benchmarks.places import Place

MEGABYTE = 1e6
MEMORY_REACH = 100.0
"""Megabytes above an interpreter that has imported chatkeep."""
STREAMING_REACH = 1.2
ROUNDS = 2


def export(place: Place, scale: Scale) -> Iterator[Row]:
    small, large = scale.exports
    floor, few, many = (_largest(place.url, *arguments) for arguments in ([], [export_id(small)], [export_id(large)]))
    speed = f"{large / many['seconds']:,.0f} messages/s"
    yield Row(
        work=f"peak memory of exporting {large:,} messages",
        reference=f"chatkeep imported {floor['peak'] / MEGABYTE:.0f} MB",
        measured=f"export {many['peak'] / MEGABYTE:.0f} MB, {speed}",
        ratio=(many["peak"] - floor["peak"]) / MEGABYTE,
        rounds=ROUNDS,
        reach=MEMORY_REACH,
        unit=" MB",
    )
    yield Row(
        work=f"peak memory of exporting {large:,} messages",
        reference=f"{small:,} messages {few['peak'] / MEGABYTE:.0f} MB",
        measured=f"{large:,} messages {many['peak'] / MEGABYTE:.0f} MB",
        ratio=many["peak"] / few["peak"],
        rounds=ROUNDS,
        reach=STREAMING_REACH,
    )


def _largest(url: str, *arguments: str) -> dict[str, float]:
    runs = [_probe(url, *arguments) for _ in range(ROUNDS)]
    return max(runs, key=lambda run: run["peak"])


def _probe(url: str, *arguments: str) -> dict[str, float]:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.export_probe", *arguments],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "CHATKEEP_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if ended.returncode != 0:
        raise RuntimeError(f"the export failed: {ended.stderr.strip()}")
    result: dict[str, float] = json.loads(ended.stdout)
    return result
