"""One worker: decides what to do next, does it, and reports what broke."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from itertools import accumulate

from benchmarks.soak.board import Board
from benchmarks.soak.cold import Cold
from benchmarks.soak.directory import Directory
from benchmarks.soak.lists import Lists
from benchmarks.soak.logs import Duels, Logs
from benchmarks.soak.plan import DUELS, LISTS, LOGS, WIPED, Plan, names
from benchmarks.soak.shared import Hand, Shared
from benchmarks.soak.tally import Timed
from benchmarks.soak.violation import Finding, Promise, ViolationError
from benchmarks.soak.wiped import Wiped
from chatkeep import AsyncChatMemoryRepository, StorageError

SHARED = LOGS + DUELS + LISTS + WIPED
"""Conversations on the board."""

Step = Callable[[], Awaitable[None]]


class Worker:
    """Does one thing at a time. Errors of the storage family are counted and passed over, everything else ends it."""

    def __init__(self, number: int, plan: Plan, board: Board, repository: AsyncChatMemoryRepository) -> None:
        chance = plan.chance(number)
        self.timed = Timed(board, number)
        self.finding: Finding | None = None
        hand = Hand(number, plan.seed, board, chance, self.timed, repository)
        logs = Logs(hand, 0, names("log", LOGS))
        duels = Duels(hand, LOGS, names("duel", DUELS))
        lists = Lists(hand, LOGS + DUELS, names("list", LISTS))
        wiped = Wiped(hand, LOGS + DUELS + LISTS, names("wiped", WIPED))
        self._shared: tuple[Shared, ...] = (logs, duels, lists, wiped)
        self._cold = Cold(hand)
        directory = Directory(self._cold)
        mix: dict[Step, int] = {
            logs.append: 180, logs.again: 10, logs.window: 80, logs.follow: 30, logs.count: 20,
            duels.append: 80, duels.again: 5, duels.window: 20, duels.follow: 15, duels.count: 5,
            lists.save: 60, lists.save_if: 30, lists.read: 80,
            wiped.append: 80, wiped.wipe: 12, wiped.delete_mine: 10, wiped.read: 50,
            self._cold.append: 60, self._cold.append_if: 20, self._cold.save: 20, self._cold.read: 60,
            self._cold.delete: 6, self._cold.delete_messages: 10,
            directory.by_id: 4, directory.by_update: 4, directory.ids: 4,
        }  # fmt: skip
        self._number, self._chance = number, chance
        self._steps, self._weights = list(mix), list(accumulate(mix.values()))

    async def step(self) -> bool:
        """Does one thing; whether to go on."""
        (step,) = self._chance.choices(self._steps, cum_weights=self._weights)
        return await self._judged(step)

    async def finish(self) -> None:
        """Verifies the conversations that only this worker wrote to."""

        async def verify() -> None:
            for own in self._cold.all():
                await self._cold.verify(own)

        await self._until_it_answers(verify)

    async def verify_shared(self) -> None:
        """Verifies the conversations that all write to, when nobody does any more."""
        for kind in self._shared:
            for index in kind.names:

                async def verify(kind: Shared = kind, index: int = index) -> None:
                    await kind.verify(index)

                if not await self._until_it_answers(verify):
                    return

    async def _until_it_answers(self, step: Step, tries: int = 3) -> bool:
        """A verification that an error of the storage family stops is no verification, so it is tried again."""

        async def last() -> None:
            try:
                await step()
            except StorageError as error:
                text = f"the verification at the end could not be done: {type(error).__name__}: {error}"
                raise ViolationError(Promise.POOL, "", text) from error

        for _ in range(tries - 1):
            errors = self.timed.tally.errors.total()
            if not await self._judged(step):
                return False
            if self.timed.tally.errors.total() == errors:
                return True
        return await self._judged(last)

    async def _judged(self, step: Step) -> bool:
        try:
            await step()
        except StorageError:
            pass  # counted; what became of the write is noted on the board
        except ViolationError as broken:
            self.finding = Finding(broken.promise, broken.text, broken.conversation, self._number)
            return False
        except Exception as error:
            text = f"{self.timed.now}: {type(error).__name__}: {error}"
            self.finding = Finding(Promise.ERRORS, text, worker=self._number, trace=traceback.format_exc())
            return False
        return True
