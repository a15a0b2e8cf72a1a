"""Judges what was read of a conversation that is appended to: nothing lost, doubled, torn, moved or out of order."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.soak.board import Board, Known, Status
from benchmarks.soak.stamps import Stamp, stamp_of
from benchmarks.soak.violation import Promise, ViolationError
from chatkeep import Message
from chatkeep.conversation import HistoryEntry


class Scan:
    """Takes the messages of one or more reads in their order. `from_start`: the first read began at the first message
    of a conversation from which nothing was deleted. `aligned`: at least it began with a call's first message. `floor`:
    calls up to these numbers, by worker, had been deleted before."""

    def __init__(
        self,
        board: Board,
        seed: int,
        index: int,
        conversation: str,
        epoch: int,
        *,
        reader: int,
        from_start: bool,
        aligned: bool = False,
        floor: Sequence[int] = (),
    ) -> None:
        self._board, self._seed, self._index = board, seed, index
        self._conversation, self.epoch, self._reader = conversation, epoch, reader
        self._before_first = 0 if from_start else None
        self._aligned = from_start or aligned
        self._floor = floor
        self._next: Stamp | None = None
        self._based_on = -1
        self._doubtful: set[tuple[int, int]] = set()
        self.last: dict[int, int] = {}
        """The last call seen of each worker, without those of unknown outcome."""
        self.position = 0
        self.messages = 0

    def see_entry(self, entry: HistoryEntry) -> None:
        """A message with its position."""
        if entry.position <= self.position:
            self._fail(Promise.GROWING, f"position {entry.position} stands behind {self.position}")
        self.position = entry.position
        self.see(entry.message)

    def see(self, message: Message) -> None:
        """The message that stands behind those seen so far."""
        stamp = stamp_of(self._seed, message, self._conversation)
        if stamp.epoch != self.epoch:
            self._fail(Promise.GONE, f"{stamp} is of epoch {stamp.epoch}, and this is epoch {self.epoch}")
        if self._next is not None and stamp != self._next:
            self._fail(Promise.TOGETHER, f"{stamp} stands where {self._next} belongs")
        if self._next is None:
            self._may_be_there(stamp)
            if stamp.place and (self.messages or self._aligned):
                self._fail(Promise.TOGETHER, f"{stamp} stands without those before it")
            self._begin(stamp)
        self._next = stamp._replace(place=stamp.place + 1) if stamp.place + 1 < stamp.of else None
        self.messages += 1

    def end(self, before: Known) -> None:
        """Nothing stood behind. `before` is what was known before the last read."""
        if self._next is not None:
            self._fail(Promise.TOGETHER, f"{self._next} is missing, those of its call before it are there")
        for worker, kept in enumerate(before.kept):
            last = self.last.get(worker, self._before_first)
            if last is not None and last < kept:
                self._missing(worker, range(last + 1, kept + 1), "at the end")

    def _may_be_there(self, stamp: Stamp) -> None:
        status = self._status(stamp)
        if status is Status.NEVER:
            self._fail(Promise.LOSSLESS, f"{stamp} was never written")
        if status is Status.REFUSED:
            self._fail(Promise.OUTCOME, f"{stamp} is there, but its call raised and promised that it is not")
        if self._floor and stamp.call <= self._floor[stamp.worker] and status is not Status.UNKNOWN:
            self._fail(Promise.GONE, f"{stamp} is there; its deletion was acknowledged before the read began")

    def _begin(self, stamp: Stamp) -> None:
        if self._status(stamp) is Status.UNKNOWN:
            # It may have come late, behind calls that its worker made after it, but once.
            if (stamp.worker, stamp.call) in self._doubtful:
                self._fail(Promise.TOGETHER, f"{stamp} is there twice")
            self._doubtful.add((stamp.worker, stamp.call))
        else:
            self._follows(stamp)
        if 0 <= stamp.based_on <= self._based_on:
            self._fail(Promise.ONE_WINS, f"{stamp} stands behind a write based on version {self._based_on}")
        self._based_on = max(self._based_on, stamp.based_on)

    def _follows(self, stamp: Stamp) -> None:
        worker, call = stamp.worker, stamp.call
        last = self.last.get(worker, self._before_first)
        if last is not None:
            if call <= last:
                self._fail(Promise.TOGETHER, f"{stamp} stands behind call {last} of the same worker")
            self._missing(worker, range(last + 1, call), f"before {stamp}")
        self.last[worker] = call

    def _status(self, stamp: Stamp) -> Status:
        return self._board.status(self._index, stamp.worker, stamp.call)

    def _missing(self, worker: int, calls: range, where: str) -> None:
        for call in calls:
            if self._board.status(self._index, worker, call) is Status.KEPT:
                own = worker == self._reader
                self._fail(
                    Promise.OWN if own else Promise.KEPT,
                    f"call {call} of worker {worker} was acknowledged and is missing {where}",
                )

    def _fail(self, promise: Promise, text: str) -> None:
        raise ViolationError(promise, self._conversation, text)


class Rising:
    """Judges the positions that one reader sees of a conversation from which messages also go away.

    What appears appears behind everything that was seen before.
    """

    def __init__(self, conversation: str) -> None:
        self._conversation = conversation
        self._seen: dict[int, str] = {}
        self._top = 0

    def see(self, entries: Sequence[HistoryEntry]) -> None:
        """One read of the whole conversation."""
        last = 0
        for entry in entries:
            position = entry.position
            if position <= last:
                self._fail(f"position {position} stands behind {last}")
            last = position
            if position <= self._top and self._seen.get(position) != entry.message.id:
                self._fail(
                    f"position {position} of message {entry.message.id!r} is new, and {self._top} was seen before"
                )
        self._top = max(self._top, last)
        self._seen = {entry.position: entry.message.id for entry in entries}

    def _fail(self, text: str) -> None:
        raise ViolationError(Promise.GROWING, self._conversation, text)
