"""Conversations that only one worker writes to: it knows exactly what each must hold, and reads it back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.soak.plan import COLD, COLD_MESSAGES, WINDOW, size_of_append, size_of_list
from benchmarks.soak.scan import Rising
from benchmarks.soak.shared import Hand
from benchmarks.soak.stamps import FREE, Stamp, batch, stamp_of
from benchmarks.soak.violation import Promise, ViolationError
from chatkeep import ConcurrentChangeError, Message, Outcome, StorageError
from chatkeep.conversation import Conversation

Content = tuple[Stamp, ...] | None
"""The messages of a conversation, None where it does not exist."""


@dataclass
class _Own:
    """One conversation, and what is known of it."""

    name: str
    content: Content = None
    perhaps: Content = None
    doubtful: bool = False
    """A write of unknown outcome: it holds `content` or `perhaps`, and is not written to any more."""
    epoch: int = 0
    """How often it was deleted."""
    calls: int = 0
    refused: set[int] = field(default_factory=set)
    """Calls that raised and promised that nothing was written."""
    version: int = 0
    exact: bool = True
    """Whether `version` is its version, or a lower one."""

    @property
    def expected(self) -> int:
        return 0 if self.content is None else self.version


class Cold:
    """The conversations of one worker."""

    def __init__(self, hand: Hand) -> None:
        self.hand = hand
        self.timed, self.repository, self.chance = hand.timed, hand.repository, hand.chance
        self._made = 0
        self._own = [self._new() for _ in range(COLD)]
        self.retired: list[_Own] = []
        self._rising: dict[str, Rising] = {}

    def all(self) -> list[_Own]:
        return self._own + self.retired

    # --- writes ---

    async def append(self) -> None:
        own = self._pick()
        if len(own.content or ()) > COLD_MESSAGES:
            await self._delete(own)
            return
        await self._append(own, None)

    async def append_if(self) -> None:
        """With the right version, which must win, or with a wrong one, which must not."""
        own = self._pick()
        if not own.exact:
            await self._look_up(own)
            return
        expected = own.expected
        if self.chance.random() < 0.3:
            expected += self.chance.choice((1, 2**30)) if expected == 0 else self.chance.choice((-expected, -1, 1))
        try:
            await self._append(own, expected)
        except ConcurrentChangeError as error:
            if expected == own.expected or (error.expected, error.actual) != (expected, own.expected):
                text = f"version {own.expected} was there and {expected} was expected: {error}"
                raise ViolationError(Promise.ERRORS, own.name, text) from error

    async def save(self) -> None:
        own = self._pick()
        size = 0 if self.chance.random() < 0.05 else size_of_list(self.chance)
        stamps = self._stamps(own, size, FREE)
        messages = batch(self.hand.seed, stamps[0]) if stamps else []
        with self._write(own, tuple(stamps)):
            self._grew(own, await self.timed("save_all", self.repository.save_all(own.name, messages)))

    async def delete_messages(self) -> None:
        own = self._pick()
        there = own.content or ()
        doomed = {stamp for stamp in there if self.chance.random() < 0.3}
        ids = [stamp.id for stamp in doomed] + [f"{own.name}/nobody/wrote/this"]
        rest = None if own.content is None else tuple(stamp for stamp in there if stamp not in doomed)
        with self._write(own, rest):
            deleted = await self.timed("delete messages", self.repository.delete_messages(own.name, ids))
            own.exact = own.exact and not doomed
        if deleted != len(doomed):
            text = f"deleting {len(doomed)} of {len(there)} messages by id removed {deleted}"
            raise ViolationError(Promise.KEPT, own.name, text)

    async def delete(self) -> None:
        await self._delete(self._pick())

    async def _delete(self, own: _Own) -> None:
        existed = own.content is not None
        with self._write(own, None):
            delete = self.repository.delete_by_conversation_id(own.name)
            deleted = await self.timed("delete conversation", delete)
        own.epoch, own.exact = own.epoch + 1, True
        if existed and not deleted:
            raise ViolationError(Promise.KEPT, own.name, "it was there, and its deletion found nothing")

    async def _append(self, own: _Own, expected: int | None) -> None:
        right = expected is None or expected == own.expected
        stamps = self._stamps(own, size_of_append(self.chance), FREE if expected is None else expected)
        messages = batch(self.hand.seed, stamps[0])
        with self._write(own, (*(own.content or ()), *stamps)):
            append = self.repository.append(own.name, messages, expected_version=expected)
            version = await self.timed("append" if expected is None else "append if", append)
            if not right:
                text = f"version {own.expected} was there, {expected} was expected, and the append was acknowledged"
                raise ViolationError(Promise.ONE_WINS, own.name, text)
            self._grew(own, version)

    @contextlib.contextmanager
    def _write(self, own: _Own, content: Content) -> Iterator[None]:
        """Within the context, a call that leaves this content behind it if it succeeds."""
        try:
            yield
        except StorageError as error:
            if error.outcome is Outcome.UNKNOWN:
                own.perhaps, own.doubtful = content, True
                self._own[self._own.index(own)] = self._new()
                self.retired.append(own)
            else:
                own.refused.add(own.calls)
            raise
        except ConcurrentChangeError:
            own.refused.add(own.calls)
            raise
        own.content = content

    # --- reads ---

    async def read(self) -> None:
        own = self.chance.choice(self.all())
        match self.chance.randrange(5):
            case 0:
                await self._look_up(own)
            case 1:
                count = await self.timed("count", self.repository.count_messages(own.name))
                if count not in {len(content or ()) for content in self.possible(own)}:
                    text = f"{count} messages were counted, and it has {len(own.content or ())}"
                    raise ViolationError(Promise.OWN, own.name, text)
            case 2:
                await self._read_history(own)
            case 3:
                find = self.repository.find_by_conversation_id(own.name, limit=WINDOW)
                self._judge(own, await self.timed("read window", find), WINDOW)
            case _:
                await self.verify(own)

    async def verify(self, own: _Own) -> None:
        self._judge(own, await self.timed("read whole", self.repository.find_by_conversation_id(own.name)))

    def judge_entry(self, own: _Own, entry: Conversation | None) -> None:
        """The directory's entry of a conversation."""
        if entry is None:
            if None not in self.possible(own):
                raise ViolationError(Promise.DIRECTORY, own.name, "it exists and has no entry")
            return
        counts = [len(content) for content in self.possible(own) if content is not None]
        if entry.message_count not in counts:
            known = f"it holds {' or '.join(map(str, counts))}" if counts else "it does not exist"
            text = f"its entry counts {entry.message_count} messages; {known}"
            raise ViolationError(Promise.DIRECTORY if counts or not own.epoch else Promise.GONE, own.name, text)
        self.hand.sees_version(own.name, entry.version, own.version)
        if own.exact and not own.doubtful and entry.version != own.version:
            text = f"its version is {entry.version} after a write that returned {own.version}"
            raise ViolationError(Promise.OWN, own.name, text)
        own.version, own.exact = entry.version, True

    async def _look_up(self, own: _Own) -> None:
        self.judge_entry(own, await self.timed("get conversation", self.repository.get_conversation(own.name)))

    async def _read_history(self, own: _Own) -> None:
        entries = [entry async for page in self.hand.pages(own.name, limit=WINDOW) for entry in page]
        self._rising.setdefault(own.name, Rising(own.name)).see(entries)
        self._judge(own, [entry.message for entry in entries])

    def _judge(self, own: _Own, messages: Sequence[Message], limit: int | None = None) -> None:
        found = [stamp_of(self.hand.seed, message, own.name) for message in messages]
        possible = [list(content or ()) for content in self.possible(own)]
        if found in [content if limit is None else content[-limit:] for content in possible]:
            return
        known = possible[0]
        missing = [stamp for stamp in known if stamp not in found] if limit is None else []
        extra = [stamp for stamp in found if stamp not in known]
        what = f"missing: {missing[0]}" if missing else f"not its own: {extra[0]}" if extra else "in another order"
        promise = Promise.OWN
        if extra:
            promise = Promise.OUTCOME if extra[0].call in own.refused else promise
            promise = Promise.GONE if extra[0].epoch < own.epoch else promise
        text = f"{len(found)} messages were read of {len(known)} that its only writer left there; {what}"
        raise ViolationError(promise, own.name, text)

    @staticmethod
    def possible(own: _Own) -> list[Content]:
        """What it may hold: one thing, or after a write of unknown outcome two."""
        return [own.content, own.perhaps] if own.doubtful else [own.content]

    # --- steps ---

    def _new(self) -> _Own:
        self._made += 1
        return _Own(f"cold-{self.hand.number}-{self._made}")

    def _pick(self) -> _Own:
        return self.chance.choice(self._own)

    def _stamps(self, own: _Own, size: int, based_on: int) -> list[Stamp]:
        own.calls += 1
        first = Stamp(own.name, own.epoch, self.hand.number, own.calls, 0, size, based_on)
        return [first._replace(place=place) for place in range(size)]

    def _grew(self, own: _Own, version: int) -> None:
        if version <= own.version:
            raise ViolationError(Promise.GROWING, own.name, f"a write returned version {version} after {own.version}")
        self.hand.sees_version(own.name, version)
        own.version, own.exact = version, True
