"""What the shared conversations have in common: their turn of epochs, and versions that only grow."""

from __future__ import annotations

import abc
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from benchmarks.soak.board import Board, Known, Phase
from benchmarks.soak.tally import Timed
from benchmarks.soak.violation import Promise, ViolationError
from chatkeep import AsyncChatMemoryRepository, ConcurrentChangeError, Outcome, StorageError
from chatkeep.conversation import Conversation, HistoryEntry


@dataclass
class Hand:
    """What a worker works with."""

    number: int
    seed: int
    board: Board
    chance: random.Random
    timed: Timed
    repository: AsyncChatMemoryRepository
    versions: dict[str, int] = field(default_factory=dict)
    """The highest version that this worker has seen of each conversation."""

    async def pages(self, conversation: str, limit: int) -> AsyncIterator[list[HistoryEntry]]:
        """The whole history, page by page."""
        cursor: str | None = None
        while True:
            page = await self.timed("history page", self.repository.history(conversation, after=cursor, limit=limit))
            yield page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def sees_version(self, conversation: str, version: int, at_least: int = 0) -> None:
        """A version that a read gave; `at_least` is what was acknowledged before the read began."""
        known = max(self.versions.get(conversation, 0), at_least)
        if version < known:
            raise ViolationError(Promise.GROWING, conversation, f"version {version} after {known}")
        self.versions[conversation] = version


class Shared(abc.ABC):
    """One kind of conversations that all workers share; `first` is the index of its first one on the board."""

    def __init__(self, hand: Hand, first: int, names: Sequence[str]) -> None:
        self.hand = hand
        self.board, self.seed, self.me, self.chance = hand.board, hand.seed, hand.number, hand.chance
        self.timed, self.repository = hand.timed, hand.repository
        self.names = dict(enumerate(names, first))

    @abc.abstractmethod
    async def verify(self, index: int) -> None:
        """Judges a conversation to which nobody writes at the moment, as a whole."""

    def pick(self) -> int:
        return self.chance.choice(list(self.names))

    async def turn(self, index: int) -> None:
        """Where a closed conversation is left by all: verifies and deletes it, and begins the next epoch."""
        phase = self.board.take(index)
        if phase is None:
            return
        name = self.names[index]
        try:
            if phase is Phase.CLOSING:
                await self.verify(index)
                phase = Phase.GOING
            await self.timed("delete conversation", self.repository.delete_by_conversation_id(name))
            rest = await self.timed("read whole", self.repository.find_by_conversation_id(name))
        except StorageError:
            # Someone will try again.
            self.board.give_back(index, phase)
            raise
        if rest:
            raise ViolationError(Promise.GONE, name, f"{len(rest)} messages are there after its deletion")
        self.board.begin_anew(index)

    async def look_up(self, index: int) -> tuple[Known, Conversation | None]:
        """The directory's entry, and what was known before the read."""
        before = self.board.look(index)
        entry = await self.timed("get conversation", self.repository.get_conversation(self.names[index]))
        if entry is not None:
            self.hand.sees_version(self.names[index], entry.version, before.top)
        return before, entry

    def grew(self, index: int, before: Known, version: int) -> None:
        """A write began after `before` and returned this version."""
        if version <= before.top:
            text = f"a write returned version {version}, and one that was acknowledged before it began {before.top}"
            raise ViolationError(Promise.GROWING, self.names[index], text)
        self.hand.sees_version(self.names[index], version)

    def won(self, index: int, expected_version: int) -> None:
        """A write with this expected version was acknowledged."""
        if not self.board.claim(index, expected_version):
            text = f"two writes that expected version {expected_version} were acknowledged"
            raise ViolationError(Promise.ONE_WINS, self.names[index], text)

    def lost(self, index: int, before: Known, expected_version: int, error: ConcurrentChangeError) -> None:
        """A write with this expected version was refused."""
        name = self.names[index]
        if error.expected != expected_version or error.actual == expected_version:
            raise ViolationError(Promise.ERRORS, name, f"expected version {expected_version} was refused with: {error}")
        if error.actual < before.top:
            text = f"a refusal names version {error.actual}, and {before.top} was acknowledged before"
            raise ViolationError(Promise.GROWING, name, text)

    def repeats(self, error: StorageError) -> bool:
        """Whether to make a call again whose outcome is unknown: both ways are right."""
        return error.outcome is Outcome.UNKNOWN and self.chance.random() < 0.5
