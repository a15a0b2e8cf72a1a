"""Times two sides in turn and compares their medians. Knows no database."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import chain

BLOCKS = 20
"""A comparison is cut into so many blocks; the spread is that of the blocks' ratios."""
WARM_UP = 30
"""Untimed rounds: pools fill, statements are prepared, planners settle."""

Timer = Callable[[], float]
"""Does the work once and returns the seconds it took."""


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    seconds: float
    """For each comparison, both sides together."""
    long: int
    """Messages of the long conversation."""
    window: int
    """Messages of the conversation whose newest 20 are read."""
    exports: tuple[int, int]
    """Messages of the two exports, the small and the large one."""


FULL = Scale(seconds=4.0, long=300_000, window=10_000, exports=(10_000, 100_000))
QUICK = Scale(seconds=0.25, long=10_000, window=2_000, exports=(2_000, 10_000))


@dataclass(frozen=True)
class Row:
    """One line of the report."""

    work: str
    reference: str
    measured: str
    ratio: float
    spread: tuple[float, float] | None = None
    """10th and 90th percentile of the ratio."""
    rounds: int = 1
    reach: float | None = None
    """The ratio that must not be exceeded; None for a row that only informs."""
    unit: str = "x"

    @property
    def missed(self) -> bool:
        return self.reach is not None and self.ratio > self.reach


def timed(work: Callable[[], object]) -> Timer:
    def once() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return once


def timed_async(work: Callable[[], Awaitable[object]], runner: asyncio.Runner) -> Timer:
    """Times the awaiting within the loop; starting and stopping the loop is left out."""

    async def once() -> float:
        began = time.perf_counter()
        await work()
        return time.perf_counter() - began

    return lambda: runner.run(once())


def compare(
    work: str, reference: tuple[str, Timer], measured: tuple[str, Timer], seconds: float, reach: float | None = None
) -> Row:
    """`measured` over `reference`, the sides taking turns: A B, B A, A B, …

    The ratio is the median of the blocks' ratios, each of two medians: the load of a shared machine drifts, and what
    lies close together in time is compared.
    """
    one, other = reference[1], measured[1]
    warm_up = [one() + other() for _ in range(WARM_UP)]
    per_block = max(5, round(seconds / BLOCKS / statistics.median(warm_up)))
    blocks = [_block(one, other, per_block) for _ in range(BLOCKS)]
    ratios = [statistics.median(b) / statistics.median(a) for a, b in blocks]
    tenths = statistics.quantiles(ratios, n=10, method="inclusive")
    first, second = (statistics.median(chain.from_iterable(times)) for times in zip(*blocks, strict=True))
    return Row(
        work=work,
        reference=f"{reference[0]} {duration(first)}",
        measured=f"{measured[0]} {duration(second)}",
        ratio=statistics.median(ratios),
        spread=(tenths[0], tenths[-1]),
        rounds=BLOCKS * per_block,
        reach=reach,
    )


def _block(one: Timer, other: Timer, rounds: int) -> tuple[list[float], list[float]]:
    first, second = [], []
    for number in range(rounds):
        if number % 2 == 0:
            first.append(one())
            second.append(other())
        else:
            second.append(other())
            first.append(one())
    return first, second


def duration(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:,.1f} ms"
