"""ChatMemory and AsyncChatMemory: what every memory offers. The operations stand in operations.py, once for both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from chatkeep.memory.steps import Steps, run, run_async
from chatkeep.message import Message

if TYPE_CHECKING:
    from chatkeep.async_repository import AsyncChatMemoryRepository
    from chatkeep.memory.operations import Operations
    from chatkeep.repository import ChatMemoryRepository

T = TypeVar("T")
M = TypeVar("M", bound="ChatMemory | AsyncChatMemory")


class ChatMemory:
    """What a model sees of the conversations in a repository. Use it from any thread; it holds no state of its own.

    Every method raises InvalidConversationIdError for what is no conversation id, TypeError for what is no Message, and
    what the repository's methods raise.
    """

    repository: ChatMemoryRepository
    _operations: Operations

    def add(self, conversation_id: str, *messages: Message) -> None:
        """Add messages at the end, all or none; no messages are a no-op.

        Repeating a call is safe: a message whose id is stored in the context with the same content is not added again.
        A message that left the context (by `clear`, `set`, or as a system message that another replaced) may be added
        again under its id, and moves to the end. A system message whose text equals the current one is ignored;
        another text replaces it. Never fails for size.

        Raises InvalidMessageError for an id that is stored with another content, MessageTooLargeError beyond
        the repository's `capabilities.max_message_bytes`.
        """
        self._run(self._operations.add(conversation_id, messages))

    def get(self, conversation_id: str, *, upcoming: Iterable[Message] = ()) -> list[Message]:
        """The view: what to send to the model, oldest first; `[]` for an unknown id.

        `upcoming`: the view as it would be with these added. Nothing is stored.
        Raises WindowOverflowError where the memory was made with `on_overflow="error"` and even the least view is over
        the limit; TypeError or ValueError where a dynamic limit is no whole number of 1 or more.
        """
        return self._run(self._operations.get(conversation_id, upcoming))

    def set(self, conversation_id: str, messages: Iterable[Message]) -> None:
        """Begin the context anew with these messages, in one step. `[]` is `clear`.

        With `eviction="keep"` what was stored before stays in the repository as history, and messages that are set
        again under their ids move. With `eviction="delete"` it is deleted.

        Raises UnsupportedOperationError where the backend's capability `context` (or, to delete, `conditional_writes`)
        is missing.
        """
        self._run(self._operations.set(conversation_id, messages))

    def clear(self, conversation_id: str) -> None:
        """Empty the context, system message included. An unknown id is a no-op. For `eviction` and errors see `set`."""
        self._run(self._operations.clear(conversation_id))

    def conversation(self, conversation_id: str) -> ConversationMemory:
        """This memory bound to one conversation. No I/O.

        Raises InvalidConversationIdError.
        """
        return ConversationMemory(self, conversation_id)

    def _run(self, steps: Steps[T]) -> T:
        return run(self.repository, steps)


class AsyncChatMemory:
    """The methods of ChatMemory, awaited. Their contract is written there."""

    repository: AsyncChatMemoryRepository
    _operations: Operations

    async def add(self, conversation_id: str, *messages: Message) -> None:
        await self._run(self._operations.add(conversation_id, messages))

    async def get(self, conversation_id: str, *, upcoming: Iterable[Message] = ()) -> list[Message]:
        return await self._run(self._operations.get(conversation_id, upcoming))

    async def set(self, conversation_id: str, messages: Iterable[Message]) -> None:
        await self._run(self._operations.set(conversation_id, messages))

    async def clear(self, conversation_id: str) -> None:
        await self._run(self._operations.clear(conversation_id))

    def conversation(self, conversation_id: str) -> AsyncConversationMemory:
        return AsyncConversationMemory(self, conversation_id)

    async def _run(self, steps: Steps[T]) -> T:
        return await run_async(self.repository, steps)


class _Bound(Generic[M]):
    def __init__(self, memory: M, conversation_id: str) -> None:
        from chatkeep.identifiers import check_conversation_id

        self.memory = memory
        self.id = check_conversation_id(conversation_id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r} of {self.memory!r}>"


class ConversationMemory(_Bound[ChatMemory]):
    """A memory bound to one conversation, whose id is `id`: the methods of ChatMemory without it."""

    def add(self, *messages: Message) -> None:
        self.memory.add(self.id, *messages)

    def get(self, *, upcoming: Iterable[Message] = ()) -> list[Message]:
        return self.memory.get(self.id, upcoming=upcoming)

    def set(self, messages: Iterable[Message]) -> None:
        self.memory.set(self.id, messages)

    def clear(self) -> None:
        self.memory.clear(self.id)


class AsyncConversationMemory(_Bound[AsyncChatMemory]):
    """The methods of ConversationMemory, awaited."""

    async def add(self, *messages: Message) -> None:
        await self.memory.add(self.id, *messages)

    async def get(self, *, upcoming: Iterable[Message] = ()) -> list[Message]:
        return await self.memory.get(self.id, upcoming=upcoming)

    async def set(self, messages: Iterable[Message]) -> None:
        await self.memory.set(self.id, messages)

    async def clear(self) -> None:
        await self.memory.clear(self.id)


def _share_docstrings() -> None:
    pairs: list[tuple[Any, Any]] = [
        (ChatMemory, AsyncChatMemory),
        (ChatMemory, ConversationMemory),
        (ChatMemory, AsyncConversationMemory),
    ]
    for source, target in pairs:
        for name, method in vars(target).items():
            if not name.startswith("_") and callable(method):
                method.__doc__ = getattr(source, name).__doc__


_share_docstrings()
