"""Times and errors by operation, in bounded memory."""

from __future__ import annotations

import random
import statistics
import time
from array import array
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.soak.board import Board
from chatkeep import StorageError

T = TypeVar("T")

SAMPLE = 10_000
"""Times kept of each worker and operation; of more, a random sample."""


@dataclass
class Times:
    """How long the calls of one operation took, in seconds."""

    count: int = 0
    longest: float = 0.0
    sample: array[float] = field(default_factory=lambda: array("d"))

    def add(self, seconds: float) -> None:
        self.count += 1
        self.longest = max(self.longest, seconds)
        if len(self.sample) < SAMPLE:
            self.sample.append(seconds)
        elif (place := random.randrange(self.count)) < SAMPLE:
            self.sample[place] = seconds

    def percentiles(self) -> tuple[float, float]:
        """The 50th and the 99th."""
        if len(self.sample) < 2:
            return self.longest, self.longest
        hundredths = statistics.quantiles(self.sample, n=100, method="inclusive")
        return hundredths[49], hundredths[98]


@dataclass
class Tally:
    """What one worker, or all of them, did. Retries inside are part of a call's time, and no errors."""

    times: dict[str, Times] = field(default_factory=dict)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By operation and class, with the outcome of a write that is unknown."""

    def add(self, other: Tally) -> None:
        self.errors.update(other.errors)
        for operation, times in other.times.items():
            mine = self.times.setdefault(operation, Times())
            mine.count += times.count
            mine.longest = max(mine.longest, times.longest)
            mine.sample.extend(times.sample)


class Timed:
    """A worker's way to call the repository: `await timed("append", repository.append(…))`."""

    def __init__(self, board: Board, worker: int) -> None:
        self.tally = Tally()
        self.now = ""
        """The latest operation."""
        self._run = board.run
        self._worker = worker

    async def __call__(self, operation: str, call: Awaitable[T]) -> T:
        self.now = operation
        self._run.since[self._worker] = time.monotonic()
        began = time.perf_counter()
        try:
            return await call
        except StorageError as error:
            unknown = error.outcome.value == "unknown"
            self.tally.errors[operation, type(error).__name__ + (" (outcome unknown)" if unknown else "")] += 1
            self._run.errors[self._worker] += 1
            raise
        finally:
            self.tally.times.setdefault(operation, Times()).add(time.perf_counter() - began)
            self._run.operations[self._worker] += 1
            self._run.since[self._worker] = 0.0
