"""What the kinds of windows decide: how much to read, and the view over what was read. No storage, no forms."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence

from chatkeep.memory.trim import Sizes, after_adding, trimmed, trimmed_log
from chatkeep.memory.window import Measure, Messages, Tokens, Turns, View, turn_view
from chatkeep.message import Message

SPARE = 2
"""Rows read beyond a window of messages, so that a few which take no room don't cost a second read."""


class Boundary(abc.ABC):
    """How a view is cut out of a log. `counts` are token counts by message id, None where messages are counted."""

    @abc.abstractmethod
    def view(
        self,
        messages: Sequence[Message],
        system: Message | None,
        limit: int,
        measure: Measure,
        *,
        whole: bool = True,
        overhead: int = 0,
    ) -> View | None:
        """The view over a log of which `messages` is the newest part; None where older ones are needed."""


class TurnBoundary(Boundary):
    """A valid prompt, always."""

    def view(
        self,
        messages: Sequence[Message],
        system: Message | None,
        limit: int,
        measure: Measure,
        *,
        whole: bool = True,
        overhead: int = 0,
    ) -> View | None:
        return turn_view(messages, system, limit, measure, whole=whole, reserved=overhead)


class MessageBoundary(Boundary):
    """LangChain4j's rule to the letter."""

    def __init__(self, *, system_first: bool) -> None:
        self.system_first = system_first

    def view(
        self,
        messages: Sequence[Message],
        system: Message | None,
        limit: int,
        measure: Measure,
        *,
        whole: bool = True,
        overhead: int = 0,
    ) -> View | None:
        sizes = sizes_of(measure, overhead)
        kept = trimmed_log(messages, system, limit, sizes, system_first=self.system_first, whole=whole)
        return None if kept is None else View(kept, sizes.of(kept), limit, measure.unit)

    def after(self, state: Sequence[Message], added: Sequence[Message], limit: int, sizes: Sizes) -> list[Message]:
        """The running state after these were added one by one."""
        for message in added:
            state = after_adding(state, message, limit, sizes, system_first=self.system_first)
        return list(state)

    def trimmed(self, state: Sequence[Message], limit: int, sizes: Sizes) -> list[Message]:
        return trimmed(state, limit, sizes)


def sizes_of(measure: Measure, overhead: int) -> Sizes:
    """What a measure counts, as the other rule takes it."""
    return Sizes(measure.counts if isinstance(measure, Tokens) else None, overhead)


class Kind(abc.ABC):
    """What the limit of a memory counts."""

    parameter: str
    """The limit's name."""
    estimator_key = ""
    """Of the token counts that it wants: the estimator's name and version; `""` where it counts no tokens."""
    overhead = 0

    @abc.abstractmethod
    def measure(self, counts: Mapping[str, int]) -> Measure: ...

    @abc.abstractmethod
    def first(self, limit: int) -> int:
        """How many messages to read at once."""

    def more(self, seen: int, size: int, limit: int) -> int:
        """How many older ones to read next, where `seen` messages of `size` tokens did not decide."""
        return 2 * seen

    def count(self, message: Message) -> int:
        """The tokens of one message, where tokens are counted."""
        raise NotImplementedError


class MessageKind(Kind):
    parameter = "max_messages"

    def measure(self, counts: Mapping[str, int]) -> Measure:
        return Messages()

    def first(self, limit: int) -> int:
        return limit + SPARE


class TurnKind(Kind):
    parameter = "max_turns"

    def measure(self, counts: Mapping[str, int]) -> Measure:
        return Turns()

    def first(self, limit: int) -> int:
        return 3 * limit + SPARE
