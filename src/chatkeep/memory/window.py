"""What a window shows (`boundary="turn"`): pure rules from a log to a view that is a valid prompt. Knows no storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from chatkeep.errors import WindowOverflowError
from chatkeep.memory.groups import Group, groups_of, has_content, is_system
from chatkeep.message import Message


class Measure(Protocol):
    """What a limit counts."""

    unit: str
    """For errors: "messages", "tokens", "turns"."""
    least: int
    """What one more turn takes at least."""

    def of_system(self, message: Message) -> int: ...

    def of_group(self, group: Group) -> int: ...


class Messages:
    """One for each message that is shown."""

    unit = "messages"
    least = 1

    def of_system(self, message: Message) -> int:
        return 1

    def of_group(self, group: Group) -> int:
        return len(group.messages)


class Turns:
    """One for each user message that says something; the system message takes none."""

    unit = "turns"
    least = 1

    def of_system(self, message: Message) -> int:
        return 0

    def of_group(self, group: Group) -> int:
        return int(group.starts_turn)


class Tokens:
    """The counts of the messages shown, by message id, and those of the request around them.

    A copy that shows only some parts of a message takes the count of the whole: too much rather than too little.
    """

    unit = "tokens"
    least = 0

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = counts

    def of_system(self, message: Message) -> int:
        return self.counts[message.id]

    def of_group(self, group: Group) -> int:
        return sum(self.counts[message.id] for message in group.messages)


class View(msgspec.Struct, frozen=True):
    """What the model sees, and what it takes of the limit."""

    messages: list[Message]
    size: int
    limit: int
    unit: str
    answering: list[Message] = []
    """A group that is still being answered and not shown: there is no user message before it."""

    @property
    def overflows(self) -> bool:
        """Whether even the least view takes more than the limit."""
        return self.size > self.limit

    def checked(self, on_overflow: str, conversation_id: str) -> list[Message]:
        """The messages; with `on_overflow="error"` an error instead of more than the limit."""
        if self.overflows and on_overflow == "error":
            raise WindowOverflowError(conversation_id, size=self.size, limit=self.limit, unit=self.unit)
        return self.messages


def turn_view(
    messages: Sequence[Message],
    system: Message | None,
    limit: int,
    measure: Measure,
    *,
    whole: bool = True,
    reserved: int = 0,
) -> View | None:
    """[system] + the longest contiguous suffix of `messages` that fits the limit and starts at a user message.

    Where the newest turn alone doesn't fit: its user message and its newest groups that fit, contiguous, and at least
    the last group, whatever that takes. Without a user message: [system] only.

    `messages` is the newest part of the log, oldest first; `whole` says that nothing lies before it. None: older
    messages are needed to decide. `reserved` is taken off the limit beforehand.
    """
    shown_system = [system] if system is not None and has_content(system.parts) else []
    taken = reserved + sum(measure.of_system(message) for message in shown_system)
    groups = groups_of(messages)
    sizes = [measure.of_group(group) for group in groups]
    chosen = _suffix(groups, sizes, limit - taken, measure.least, whole=whole)
    if chosen is None:
        return None
    shown = [message for index in chosen for message in groups[index].messages]
    size = taken + sum(sizes[index] for index in chosen)
    answering = [] if chosen or not groups or not groups[-1].open else groups[-1].messages
    return View([*shown_system, *shown], size, limit, measure.unit, answering)


def _suffix(
    groups: Sequence[Group], sizes: Sequence[int], room: int, least: int, *, whole: bool
) -> Iterable[int] | None:
    """The indexes of the groups that are shown; None where that depends on groups before these."""
    total = 0
    start = newest = None
    for index in range(len(groups) - 1, -1, -1):
        total += sizes[index]
        if groups[index].leads:
            newest = index if newest is None else newest
            start = index if total <= room else start
        if newest is not None and total + least > room:
            break  # whatever lies before, a view that starts there doesn't fit
    else:
        if not whole:
            return None
    if start is not None:
        return range(start, len(groups))
    return () if newest is None else _least(groups, sizes, room, newest)


def _least(groups: Sequence[Group], sizes: Sequence[int], room: int, lead: int) -> list[int]:
    """The newest turn, begun at `lead`, that doesn't fit as a whole: what must be shown, and what fits of the rest."""
    last = len(groups) - 1
    # A newer user message that also brings results can't lead, and must not be lost either.
    asked = max(index for index in range(lead, last + 1) if groups[index].starts_turn)
    must = {lead, asked, last} | ({asked - 1} if groups[asked].joined else set())
    left = room - sum(sizes[index] for index in must)
    shown = set(must)
    for index in range(last, lead, -1):
        if index in must:
            continue
        if sizes[index] > max(left, 0):
            break
        left -= sizes[index]
        shown.add(index)
    # A joined message is nothing without the group before it.
    dangling = {index for index in shown if groups[index].joined and index - 1 not in shown}
    return sorted(shown - dangling)


def newest_system(messages: Iterable[Message], current: Message | None) -> Message | None:
    """The system message after these were added: the newest one counts, and text equal to the current is ignored."""
    for message in messages:
        if is_system(message) and not says_the_same(message, current):
            current = message
    return current


def says_the_same(message: Message, current: Message | None) -> bool:
    """Whether a system message repeats the current one: only the text counts."""
    return current is not None and message.text == current.text


def without_repeated_system(messages: Iterable[Message], current: Message | None) -> list[Message]:
    """What is left to be stored: system messages that repeat the one before them are ignored."""
    kept = []
    for message in messages:
        if is_system(message):
            if says_the_same(message, current):
                continue
            current = message
        kept.append(message)
    return kept
