"""MessageWindowChatMemory: the newest messages, up to a number of them."""

from __future__ import annotations

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.memory.construction import BoundaryName, Eviction, MemoryOver, OnOverflow, R
from chatkeep.memory.limits import Limit
from chatkeep.memory.memory import AsyncChatMemory, ChatMemory
from chatkeep.memory.rules import MessageKind
from chatkeep.repository import ChatMemoryRepository


class _MessageWindow(MemoryOver[R]):
    def __init__(
        self,
        repository: R,
        max_messages: Limit = 20,
        *,
        boundary: BoundaryName = "turn",
        always_keep_system_message_first: bool = False,
        eviction: Eviction = "keep",
        on_overflow: OnOverflow = "keep",
    ) -> None:
        self._prepare(
            repository,
            MessageKind(),
            max_messages,
            boundary,
            always_keep_system_message_first,
            eviction,
            on_overflow,
        )


class MessageWindowChatMemory(_MessageWindow[ChatMemoryRepository], ChatMemory):
    """A window over the newest `max_messages` messages, the system message included.

    `max_messages`: 1 or more, or a function of the conversation id that is asked at each use.
    `boundary`: "turn" (the default) gives a valid prompt for every limit: [system] and the longest contiguous suffix of
    the conversation that fits and starts at a user message. Where the newest turn alone doesn't fit: its user message
    and its newest groups (a call with its results is one) that fit, at least the last, even beyond the limit.
    "message" is LangChain4j's rule to the letter: the oldest messages go one by one, and prompts can be invalid.
    `always_keep_system_message_first`: with "message", a new system message goes to the front instead of the end; with
    "turn" the system message is always first.
    `eviction`: "keep" (the default) deletes nothing; "delete" leaves exactly the view stored after each `add`, and a
    group that is still being answered.
    `on_overflow`: "keep" returns the least view also where it exceeds the limit, "error" makes `get` raise
    WindowOverflowError instead.

    Raises ValueError or TypeError for wrong arguments, UnsupportedOperationError for `eviction="delete"` on a backend
    without the capability `conditional_writes`.
    """

    _form = ChatMemoryRepository


class AsyncMessageWindowChatMemory(_MessageWindow[AsyncChatMemoryRepository], AsyncChatMemory):
    __doc__ = MessageWindowChatMemory.__doc__
    _form = AsyncChatMemoryRepository
