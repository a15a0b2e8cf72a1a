"""AsyncChatMemoryRepository: the methods of ChatMemoryRepository, awaited. Their contract is written there."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from chatkeep.conversation import Conversation, HistoryEntry, Page, PurgeReport
from chatkeep.message import Message
from chatkeep.repository import ChatMemoryRepository, RepositoryBase
from chatkeep.storage.record import UNSET, Never, Unset
from chatkeep.storage.runner import AsyncRunner, Call

T = TypeVar("T")


class AsyncChatMemoryRepository(RepositoryBase[AsyncRunner]):
    """Conversations in one database, for one owner, awaited. Open one with `await open_async_repository(…)`.

    Each method has the name, the arguments and the promises of ChatMemoryRepository's. When a call is cancelled, its
    write has happened or never will by the time CancelledError arrives.
    """

    async def find_conversation_ids(self) -> list[str]:
        return await self._run(self._calls.find_conversation_ids())

    async def find_by_conversation_id(self, conversation_id: str, *, limit: int | None = None) -> list[Message]:
        return await self._run(self._calls.find_by_conversation_id(conversation_id, limit))

    async def save_all(
        self,
        conversation_id: str,
        messages: Iterable[Message],
        *,
        expected_version: int | None = None,
        ttl: dt.timedelta | Never | None = None,
    ) -> int:
        return await self._run(self._calls.save_all(conversation_id, messages, expected_version, ttl))

    async def delete_by_conversation_id(self, conversation_id: str) -> bool:
        deleted = await self._run(self._calls.delete_by_conversation_id(conversation_id))
        for store in self._vector_stores:
            removed = store.remove(self.owner, conversation_id, None)
            if inspect.isawaitable(removed):
                await removed
        return deleted

    async def append(
        self,
        conversation_id: str,
        messages: Message | Iterable[Message],
        *,
        expected_version: int | None = None,
        ttl: dt.timedelta | Never | None = None,
    ) -> int:
        return await self._run(self._calls.append(conversation_id, messages, expected_version, ttl))

    async def history(
        self,
        conversation_id: str,
        *,
        after: int | str | None = None,
        before: int | str | None = None,
        limit: int = 100,
    ) -> Page[HistoryEntry]:
        return await self._run(self._calls.history(conversation_id, after, before, limit))

    async def count_messages(self, conversation_id: str) -> int:
        return await self._run(self._calls.count_messages(conversation_id))

    async def delete_messages(self, conversation_id: str, message_ids: Iterable[str]) -> int:
        return await self._run(self._calls.delete_messages(conversation_id, message_ids))

    async def get_conversation(self, conversation_id: str) -> Conversation | None:
        return await self._run(self._calls.get_conversation(conversation_id))

    async def update_conversation(
        self,
        conversation_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
    ) -> Conversation:
        return await self._run(self._calls.update_conversation(conversation_id, title, metadata))

    async def list_conversations(
        self, *, limit: int = 100, cursor: str | None = None, order: Literal["id", "updated"] = "id"
    ) -> Page[Conversation]:
        return await self._run(self._calls.list_conversations(limit, cursor, order))

    async def purge_expired(self, *, batch_size: int = 1000, dry_run: bool = False) -> PurgeReport:
        return await self._run(self._calls.purge_expired(batch_size, dry_run))

    async def purge_idle(
        self, older_than: dt.timedelta, *, batch_size: int = 1000, dry_run: bool = False
    ) -> PurgeReport:
        return await self._run(self._calls.purge_idle(older_than, batch_size, dry_run))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._root is None:
                await self._runner.run(Call(lambda _: self._unchecked.backend.close(), repeatable=False))
                self._runner.close()

    async def __aenter__(self) -> Self:
        self._check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, call: Call[T]) -> T:
        return await self._runner.run(call)


for _name, _method in vars(AsyncChatMemoryRepository).items():
    if not _name.startswith("_"):
        _method.__doc__ = getattr(ChatMemoryRepository, _name).__doc__
