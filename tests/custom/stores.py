"""Stores for the tests: the smallest of each kind, and faulty ones."""

import asyncio
from collections.abc import Iterable

from chatkeep import Capabilities, Message
from chatkeep.custom import AsyncChatMemoryStore, ChatMemoryStore


class DictStore(ChatMemoryStore):
    """The twelve lines that anyone's first store has."""

    def __init__(self) -> None:
        self.saved: dict[str, list[Message]] = {}

    def find_conversation_ids(self) -> Iterable[str]:
        return self.saved

    def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
        return self.saved.get(conversation_id, [])

    def save_all(self, conversation_id: str, messages: list[Message]) -> None:
        self.saved[conversation_id] = messages

    def delete_by_conversation_id(self, conversation_id: str) -> None:
        self.saved.pop(conversation_id, None)


class ConditionalDictStore(DictStore):
    capabilities = Capabilities(conditional_writes=True, max_message_bytes=1_000_000)


class AsyncDictStore(AsyncChatMemoryStore):
    """The same, giving way to other tasks in each verb as a client of a service does."""

    capabilities = Capabilities(conditional_writes=True, native_async=True)

    def __init__(self) -> None:
        self.saved: dict[str, list[Message]] = {}
        self.at_once = self.most_at_once = 0
        self.closed = False

    async def find_conversation_ids(self) -> Iterable[str]:
        await self._answer()
        return list(self.saved)

    async def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
        await self._answer()
        return self.saved.get(conversation_id, [])

    async def save_all(self, conversation_id: str, messages: list[Message]) -> None:
        await self._answer()
        self.saved[conversation_id] = messages

    async def delete_by_conversation_id(self, conversation_id: str) -> None:
        await self._answer()
        self.saved.pop(conversation_id, None)

    async def close(self) -> None:
        self.closed = True

    async def _answer(self) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.001)
        self.at_once -= 1


class ParallelAsyncDictStore(AsyncDictStore):
    parallel = True
