"""What a run does: its length, its workers, its seed, and the sizes of what is written."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

LOGS = 3
"""Conversations that all workers only append to."""
DUELS = 2
"""The same, but every append names the version it is based on."""
LISTS = 2
"""Conversations that all workers replace as a whole."""
WIPED = 3
"""Conversations that all workers append to and delete from."""
COLD = 24
"""Conversations of each worker that nobody else writes to."""

WINDOW = 20
PAGE_LIMITS = (20, 100, 200)
LOG_MESSAGES = 2_000
"""So many messages (or calls of any kind) end a shared conversation: it is verified, deleted and begun anew."""
COLD_MESSAGES = 80
"""A longer conversation of a worker's own is replaced or deleted before it is appended to."""

_SIZES, _CHANCES = (1, 2, 3, 5, 50), (14, 80, 2, 2, 2)
"""Messages in one append: mostly a turn of two."""
_LIST_SIZES = (1, 2, 5, 20, 50)


@dataclass(frozen=True)
class Plan:
    """One run. The seed fixes what each worker does; who comes first is up to the machine."""

    seconds: float = 120.0
    workers: int = 16
    seed: int = 0
    asynchronous: bool = False
    processes: int = 1

    def chance(self, worker: int) -> random.Random:
        """The worker's own sequence of decisions."""
        return random.Random(f"{self.seed}/{worker}")

    def groups(self) -> list[list[int]]:
        """The numbers of the workers of each process."""
        return [list(range(first, self.workers, self.processes)) for first in range(self.processes)]


def size_of_append(chance: random.Random) -> int:
    return chance.choices(_SIZES, _CHANCES)[0]


def size_of_list(chance: random.Random) -> int:
    return chance.choice(_LIST_SIZES)


def names(kind: str, count: int) -> Sequence[str]:
    return [f"{kind}-{number}" for number in range(count)]
