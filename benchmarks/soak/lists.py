"""Conversations that all workers replace as a whole: a reader sees exactly one list, whole, and not an old one."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.soak.board import Known, Status
from benchmarks.soak.plan import WINDOW, size_of_list
from benchmarks.soak.scan import Rising
from benchmarks.soak.shared import Hand, Shared
from benchmarks.soak.stamps import FREE, Stamp, batch, stamp_of
from benchmarks.soak.violation import Promise, ViolationError
from chatkeep import ConcurrentChangeError, Message

MOST = 100
"""More than the longest list."""


class Lists(Shared):
    """A list is what one call of `save_all` was given."""

    def __init__(self, hand: Hand, first: int, names: Sequence[str]) -> None:
        super().__init__(hand, first, names)
        self._rising: dict[int, Rising] = {}

    async def save(self) -> None:
        index = self.pick()
        with self.board.visit(index) as epoch:
            if epoch is not None:
                await self._save(index, epoch, None)
                return
        await self.turn(index)

    async def save_if(self) -> None:
        """With the version that was just read."""
        index = self.pick()
        with self.board.visit(index) as epoch:
            if epoch is None:
                return
            _, entry = await self.look_up(index)
            expected = 0 if entry is None else entry.version
            before = self.board.look(index)
            try:
                await self._save(index, epoch, expected)
            except ConcurrentChangeError as error:
                self.lost(index, before, expected, error)
            else:
                self.won(index, expected)

    async def read(self) -> None:
        index = self.pick()
        name = self.names[index]
        with self.board.visit(index) as epoch:
            if epoch is None:
                return
            before = self.board.look(index)
            match self.chance.randrange(3):
                case 0:
                    messages = await self.timed("read whole", self.repository.find_by_conversation_id(name))
                    self._judge(index, epoch, before, messages)
                case 1:
                    find = self.repository.find_by_conversation_id(name, limit=WINDOW)
                    self._judge(index, epoch, before, await self.timed("read window", find), WINDOW)
                case _:
                    await self._read_history(index, epoch, before)

    async def verify(self, index: int) -> None:
        before = self.board.look(index)
        await self._read_history(index, before.epoch, before)

    async def _save(self, index: int, epoch: int, expected: int | None) -> None:
        name, size = self.names[index], size_of_list(self.chance)
        before = self.board.look(index)
        with self.board.call(index, self.me, size) as call:
            stamp = Stamp(name, epoch, self.me, call.number, 0, size, FREE if expected is None else expected)
            save = self.repository.save_all(name, batch(self.seed, stamp), expected_version=expected)
            version = await self.timed("save_all" if expected is None else "save_all if", save)
            call.version = version
        self.grew(index, before, version)

    async def _read_history(self, index: int, epoch: int, before: Known) -> None:
        page = await self.timed("history page", self.repository.history(self.names[index], limit=MOST))
        self._rising.setdefault(index, Rising(self.names[index])).see(page.items)
        self._judge(index, epoch, before, [entry.message for entry in page.items])

    def _judge(self, index: int, epoch: int, before: Known, messages: Sequence[Message], limit: int = MOST) -> None:
        name = self.names[index]
        if not messages:
            if before.kept_messages:
                raise ViolationError(Promise.REPLACED, name, "it was read empty, and nobody saves an empty list")
            return
        stamps = [stamp_of(self.seed, message, name) for message in messages]
        newest = stamps[-1]
        places = range(max(0, newest.of - limit), newest.of)
        if stamps != [newest._replace(place=place) for place in places]:
            wrong = next((stamp for stamp in stamps if stamp._replace(place=newest.place) != newest), stamps[0])
            text = f"{len(stamps)} messages that are no list of any call: {newest} and {wrong}"
            raise ViolationError(Promise.REPLACED, name, text)
        if newest.epoch != epoch:
            text = f"{newest} is of epoch {newest.epoch}, and this is epoch {epoch}"
            raise ViolationError(Promise.GONE, name, text)
        status = self.board.status(index, newest.worker, newest.call)
        if status in (Status.NEVER, Status.REFUSED):
            text = f"{newest} is there, but its call was {status.name}"
            raise ViolationError(Promise.OUTCOME, name, text)
        kept = before.kept[newest.worker]
        replaced = newest.call < kept or (newest.call == kept and before.versions[newest.worker] < before.top)
        if replaced and status is not Status.UNKNOWN:
            text = f"{newest} was read after a later list was acknowledged (version {before.top})"
            raise ViolationError(Promise.REPLACED, name, text)
