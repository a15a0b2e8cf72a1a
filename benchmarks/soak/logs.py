"""Conversations that all workers append to, and in `Duels` only with the version they are based on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.soak.plan import PAGE_LIMITS, WINDOW, size_of_append
from benchmarks.soak.scan import Scan
from benchmarks.soak.shared import Hand, Shared
from benchmarks.soak.stamps import FREE, Stamp, batch
from benchmarks.soak.violation import Promise, ViolationError
from chatkeep import ConcurrentChangeError, StorageError

PAGES_AT_ONCE = 5
STALE = 0.2
"""The share of conditional appends that name an old version on purpose."""


@dataclass
class _Latest:
    """The last append of this worker that was acknowledged."""

    stamp: Stamp
    version: int


class Logs(Shared):
    """A follower, which reads on from where it was, and windows; both see every append, whole, in order, once."""

    def __init__(self, hand: Hand, first: int, names: Sequence[str]) -> None:
        super().__init__(hand, first, names)
        self._followers: dict[int, Scan] = {}
        self._latest: dict[int, _Latest] = {}

    async def append(self) -> None:
        index = self.pick()
        with self.board.visit(index) as epoch:
            if epoch is not None:
                await self._append(index, epoch, None)
                return
        await self.turn(index)

    async def again(self) -> None:
        """An append that was acknowledged, repeated: nothing is stored twice."""
        index = self.pick()
        with self.board.visit(index) as epoch:
            latest = self._latest.get(index)
            if latest is None or latest.stamp.epoch != epoch:
                return
            before = self.board.look(index)
            stamp = latest.stamp
            expected = None if stamp.based_on == FREE else stamp.based_on
            messages = batch(self.seed, stamp)
            call = self.repository.append(self.names[index], messages, expected_version=expected)
            version = await self.timed("append again", call)
            self.hand.sees_version(self.names[index], version, before.top)

    async def window(self) -> None:
        index, name = self._picked()
        with self.board.visit(index) as epoch:
            if epoch is None:
                return
            before = self.board.look(index)
            find = self.repository.find_by_conversation_id(name, limit=WINDOW)
            messages = await self.timed("read window", find)
            if not min(WINDOW, before.kept_messages) <= len(messages) <= WINDOW:
                text = f"the newest {WINDOW} of at least {before.kept_messages} messages were {len(messages)}"
                raise ViolationError(Promise.KEPT, name, text)
            scan = self._scan(index, epoch, from_start=len(messages) < WINDOW)
            for message in messages:
                scan.see(message)
            scan.end(before)

    async def follow(self) -> None:
        """Reads what has come since this worker's last look, a few pages of it at most."""
        index, name = self._picked()
        with self.board.visit(index) as epoch:
            if epoch is None:
                return
            scan = self._followers.get(index)
            if scan is None or scan.epoch != epoch:
                scan = self._followers[index] = self._scan(index, epoch, from_start=True)
            for _ in range(PAGES_AT_ONCE):
                before = self.board.look(index)
                limit = self.chance.choice(PAGE_LIMITS)
                history = self.repository.history(name, after=scan.position or None, limit=limit)
                page = await self.timed("history page", history)
                for entry in page.items:
                    scan.see_entry(entry)
                if page.next_cursor is None:
                    scan.end(before)
                    return

    async def count(self) -> None:
        index, name = self._picked()
        with self.board.visit(index) as epoch:
            if epoch is None:
                return
            if self.chance.random() < 0.5:
                before = self.board.look(index)
                count = await self.timed("count", self.repository.count_messages(name))
            else:
                before, entry = await self.look_up(index)
                count = 0 if entry is None else entry.message_count
            after = self.board.look(index)
            if not before.kept_messages <= count <= after.possible_messages:
                text = (
                    f"{count} messages were counted; {before.kept_messages} were acknowledged before, and with those "
                    f"under way or of unknown outcome there were {after.possible_messages} after"
                )
                raise ViolationError(Promise.KEPT, name, text)

    async def verify(self, index: int) -> None:
        before = self.board.look(index)
        scan = self._scan(index, before.epoch, from_start=True)
        async for entries in self.hand.pages(self.names[index], limit=500):
            for entry in entries:
                scan.see_entry(entry)
        scan.end(before)
        count = await self.timed("count", self.repository.count_messages(self.names[index]))
        if count != scan.messages or not before.kept_messages <= count <= before.possible_messages:
            text = f"{count} messages counted, {scan.messages} read, {before.kept_messages} acknowledged"
            raise ViolationError(Promise.KEPT, self.names[index], text)

    async def _append(self, index: int, epoch: int, expected: int | None) -> None:
        name, size = self.names[index], size_of_append(self.chance)
        before = self.board.look(index)
        label = "append" if expected is None else "append if"
        with self.board.call(index, self.me, size) as call:
            stamp = Stamp(name, epoch, self.me, call.number, 0, size, FREE if expected is None else expected)
            messages = batch(self.seed, stamp)
            try:
                version = await self.timed(label, self.repository.append(name, messages, expected_version=expected))
            except StorageError as error:
                if not self.repeats(error):
                    raise
                call.doubtful = True
                version = await self.timed(label, self.repository.append(name, messages, expected_version=expected))
            call.version = version
        self._latest[index] = _Latest(stamp, version)
        self.grew(index, before, version)

    def _scan(self, index: int, epoch: int, *, from_start: bool) -> Scan:
        name = self.names[index]
        return Scan(self.board, self.seed, index, name, epoch, reader=self.me, from_start=from_start)

    def _picked(self) -> tuple[int, str]:
        index = self.pick()
        return index, self.names[index]


class Duels(Logs):
    """Every append names the version it saw, so that each one is based on the one before it."""

    async def append(self) -> None:
        index = self.pick()
        with self.board.visit(index) as epoch:
            if epoch is not None:
                await self._duel(index, epoch)
                return
        await self.turn(index)

    async def _duel(self, index: int, epoch: int) -> None:
        latest = self._latest.get(index)
        if latest is not None and latest.stamp.epoch == epoch and self.chance.random() < STALE:
            expected = latest.version
        else:
            _, entry = await self.look_up(index)
            expected = 0 if entry is None else entry.version
        before = self.board.look(index)
        try:
            await self._append(index, epoch, expected)
        except ConcurrentChangeError as error:
            self.lost(index, before, expected, error)
        else:
            self.won(index, expected)
