"""The four verbs that a person's own store implements, sync or async. No behaviour, no storage."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import ClassVar

from chatkeep.capabilities import Capabilities
from chatkeep.message import Message


class ChatMemoryStore(abc.ABC):
    """A store of your own: four verbs over a dict, a file, a service. chatkeep derives every other method.

    What you get: ids and messages are checked before a verb is called, and no two verbs run at the same time on one
    store in one process (see `parallel`). The messages and lists you are given are yours to keep. `Message.to_dict`
    and `Message.from_dict` turn messages into JSON values and back.

    What you owe: `find_by_conversation_id` returns what the last `save_all` was given, equal and in order.

    An error of your own reaches the caller as StorageError with yours as the cause; raise one of chatkeep's errors to
    say it better. `StorageConnectionError` and `ContentionError` are retried inside.

    A `conversation_id` that a verb sees is up to 511 characters long: for a named owner it is owner, U+001F, id. That
    character occurs in no legal id, so one owner's key is never another's. Keep keys exactly, by quoting where needed.
    """

    capabilities: Capabilities = Capabilities()
    """What your store can promise; the default claims nothing. Four verbs can't carry `ttl`, `purge`,
    `conversation_metadata`, `stable_positions` and the like: those are refused."""
    parallel: ClassVar[bool] = False
    """Whether verbs for different conversations may run at the same time. One conversation's never do."""

    @abc.abstractmethod
    def find_conversation_ids(self) -> Iterable[str]:
        """Every id that was saved and not deleted, also one with no messages."""

    @abc.abstractmethod
    def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
        """The messages of a conversation, oldest first; none for an unknown id."""

    @abc.abstractmethod
    def save_all(self, conversation_id: str, messages: list[Message]) -> None:
        """Replace all messages of a conversation; with none it is empty and still listed."""

    @abc.abstractmethod
    def delete_by_conversation_id(self, conversation_id: str) -> None:
        """Forget a conversation. An unknown id is no error."""

    def append(self, conversation_id: str, messages: list[Message]) -> None:
        """Optional: add messages at the end, where the store can do better than to save the whole list again.

        The ids are new in the conversation. A store that does this in one step may claim `concurrent_appends` also
        where several processes share it.
        """
        self.save_all(conversation_id, [*self.find_by_conversation_id(conversation_id), *messages])

    def close(self) -> None:
        """Optional: release what the store holds. Called once, when the repository is closed."""
        return


class AsyncChatMemoryStore(abc.ABC):
    """The verbs of ChatMemoryStore as coroutines, for a store with an asynchronous client.

    It can only be opened as an async repository. A write that has begun is awaited to its end also when the caller is
    cancelled, so give your client a time-out.
    """

    capabilities: Capabilities = Capabilities()
    """As in ChatMemoryStore; `native_async` may be claimed too."""
    parallel: ClassVar[bool] = False
    """As in ChatMemoryStore."""

    @abc.abstractmethod
    async def find_conversation_ids(self) -> Iterable[str]:
        """Every id that was saved and not deleted, also one with no messages."""

    @abc.abstractmethod
    async def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
        """The messages of a conversation, oldest first; none for an unknown id."""

    @abc.abstractmethod
    async def save_all(self, conversation_id: str, messages: list[Message]) -> None:
        """Replace all messages of a conversation; with none it is empty and still listed."""

    @abc.abstractmethod
    async def delete_by_conversation_id(self, conversation_id: str) -> None:
        """Forget a conversation. An unknown id is no error."""

    async def append(self, conversation_id: str, messages: list[Message]) -> None:
        """Optional: as in ChatMemoryStore."""
        await self.save_all(conversation_id, [*await self.find_by_conversation_id(conversation_id), *messages])

    async def close(self) -> None:
        """Optional: release what the store holds. Called once, when the repository is closed."""
        return
