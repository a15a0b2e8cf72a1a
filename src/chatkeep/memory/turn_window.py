"""TurnWindowChatMemory: the newest turns, up to a number of them."""

from __future__ import annotations

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.memory.construction import Eviction, MemoryOver, OnOverflow, R
from chatkeep.memory.limits import Limit
from chatkeep.memory.memory import AsyncChatMemory, ChatMemory
from chatkeep.memory.rules import TurnKind
from chatkeep.repository import ChatMemoryRepository


class _TurnWindow(MemoryOver[R]):
    def __init__(
        self, repository: R, max_turns: Limit, *, eviction: Eviction = "keep", on_overflow: OnOverflow = "keep"
    ) -> None:
        self._prepare(repository, TurnKind(), max_turns, "turn", False, eviction, on_overflow)


class TurnWindowChatMemory(_TurnWindow[ChatMemoryRepository], ChatMemory):
    """A window over the newest `max_turns` turns, whatever their length. Every user message starts a turn.

    The system message is shown in front and takes no turn. The view is always a valid prompt. `max_turns`, `eviction`
    and `on_overflow` as in MessageWindowChatMemory.
    """

    _form = ChatMemoryRepository


class AsyncTurnWindowChatMemory(_TurnWindow[AsyncChatMemoryRepository], AsyncChatMemory):
    __doc__ = TurnWindowChatMemory.__doc__
    _form = AsyncChatMemoryRepository
