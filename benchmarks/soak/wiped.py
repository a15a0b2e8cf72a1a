"""Conversations that all workers append to and delete from: what an acknowledged deletion removed never comes back."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.soak.board import Known
from benchmarks.soak.plan import WINDOW, size_of_append
from benchmarks.soak.scan import Rising, Scan
from benchmarks.soak.shared import Hand, Shared
from benchmarks.soak.stamps import Stamp, batch
from benchmarks.soak.violation import Promise, ViolationError
from chatkeep import Message


class Wiped(Shared):
    """A deletion takes the whole conversation, or the older calls of the worker that deletes."""

    def __init__(self, hand: Hand, first: int, names: Sequence[str]) -> None:
        super().__init__(hand, first, names)
        self._rising: dict[int, Rising] = {}
        self._mine: dict[int, list[Stamp]] = {}
        """This worker's acknowledged calls of the epoch that it has not deleted."""

    async def append(self) -> None:
        index = self.pick()
        with self.board.visit(index) as epoch:
            if epoch is not None:
                await self._append(index, epoch)
                return
        await self.turn(index)

    async def wipe(self) -> None:
        index = self.pick()
        with self.board.visit(index) as epoch:
            if epoch is None:
                return
            with self.board.deletion(index):
                delete = self.repository.delete_by_conversation_id(self.names[index])
                await self.timed("delete conversation", delete)

    async def delete_mine(self) -> None:
        """All calls of this worker but the last."""
        index = self.pick()
        with self.board.visit(index) as epoch:
            mine = self._mine.get(index, [])
            if epoch is None or len(mine) < 2 or mine[-1].epoch != epoch:
                return
            doomed, rest = mine[:-1], mine[-1:]
            ids = [stamp._replace(place=place).id for stamp in doomed for place in range(stamp.of)]
            floor = [doomed[-1].call if worker == self.me else 0 for worker in range(self.board.workers)]
            with self.board.deletion(index, floor):
                delete = self.repository.delete_messages(self.names[index], ids)
                deleted = await self.timed("delete messages", delete)
            self._mine[index] = rest
            if deleted > len(ids):
                text = f"deleting {len(ids)} messages by id removed {deleted}"
                raise ViolationError(Promise.KEPT, self.names[index], text)

    async def read(self) -> None:
        index = self.pick()
        with self.board.visit(index) as epoch:
            if epoch is None:
                return
            match self.chance.randrange(3):
                case 0:
                    before = self.board.look(index)
                    find = self.repository.find_by_conversation_id(self.names[index], limit=WINDOW)
                    messages = await self.timed("read window", find)
                    self._judge(index, epoch, before, messages, whole=len(messages) < WINDOW)
                case 1:
                    await self._read_whole(index, epoch)
                case _:
                    await self.look_up(index)

    async def verify(self, index: int) -> None:
        epoch = self.board.look(index).epoch
        await self._read_whole(index, epoch)
        await self.look_up(index)

    async def _append(self, index: int, epoch: int) -> None:
        name, size = self.names[index], size_of_append(self.chance)
        before = self.board.look(index)
        with self.board.call(index, self.me, size) as call:
            stamp = Stamp(name, epoch, self.me, call.number, 0, size)
            version = await self.timed("append", self.repository.append(name, batch(self.seed, stamp)))
            call.version = version
        mine = self._mine.setdefault(index, [])
        if mine and mine[-1].epoch != epoch:
            mine.clear()
        mine.append(stamp)
        self.grew(index, before, version)

    async def _read_whole(self, index: int, epoch: int) -> None:
        before = self.board.look(index)
        # In one read: pages of a conversation that is deleted meanwhile would be of different moments.
        page = await self.timed("history page", self.repository.history(self.names[index], limit=100_000))
        self._rising.setdefault(index, Rising(self.names[index])).see(page.items)
        self._judge(index, epoch, before, [entry.message for entry in page.items], whole=True)

    def _judge(self, index: int, epoch: int, before: Known, messages: list[Message], *, whole: bool) -> None:
        name = self.names[index]
        after = self.board.look(index)
        scan = Scan(
            self.board,
            self.seed,
            index,
            name,
            epoch,
            reader=self.me,
            from_start=False,
            aligned=whole,
            floor=before.floor,
        )
        for message in messages:
            scan.see(message)
        scan.end(before)
        for worker, kept in enumerate(before.kept):
            undeleted = before.undeleted_since[worker] == after.deletes_begun and kept > 0
            if whole and undeleted and worker not in scan.last:
                text = f"call {kept} of worker {worker} was acknowledged, nobody deleted since, and it is missing"
                raise ViolationError(Promise.OWN if worker == self.me else Promise.KEPT, name, text)
