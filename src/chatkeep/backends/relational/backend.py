"""The verbs of a SQL backend: each takes a session and hands over to reads.py, writes.py or purges.py."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Callable, Sequence
from typing import Concatenate, Literal, ParamSpec, TypeVar

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational import purges, reads, writes
from chatkeep.backends.relational.database import Database
from chatkeep.backends.relational.dialect import Dialect, DuplicateKeyError
from chatkeep.backends.relational.session import Session
from chatkeep.storage.backend import Backend, DirectoryKey, Write
from chatkeep.storage.record import ContextRecord, ConversationRecord, MessageRecord, Purged, Unset
from chatkeep.storage.vectors import VectorTables

P = ParamSpec("P")
T = TypeVar("T")


class RelationalBackend(Backend):
    """One database of a dialect."""

    def __init__(self, dialect: Dialect, request: OpenRequest) -> None:
        self.name = dialect.name
        self.capabilities = dialect.capabilities
        self.bridge = dialect.async_bridge if request.asynchronous else "inline"
        self.database = Database(dialect, request)

    def _in_session(self, operation: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self.database.session() as session:
            return operation(session, *args, **kwargs)

    def find_conversation_ids(self, owner: str) -> list[str]:
        return self._in_session(reads.find_conversation_ids, owner)

    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        return self._in_session(reads.find_messages, owner, conversation_id, limit)

    def append(self, write: Write, *, reconcile: bool = False) -> int:
        # The common case takes no look at what is stored; the unique constraint on message ids tells the rare one.
        if not reconcile:
            try:
                return self._in_session(writes.append, write, reconcile=False)
            except DuplicateKeyError:
                pass
        return self._in_session(writes.append, write, reconcile=True)

    def replace(self, write: Write) -> int:
        return self._in_session(writes.replace, write)

    def current_version(self, owner: str, conversation_id: str) -> int:
        return self._in_session(reads.current_version, owner, conversation_id)

    def delete(self, owner: str, conversation_id: str) -> bool:
        return self._in_session(writes.delete, owner, conversation_id)

    def history(
        self, owner: str, conversation_id: str, after: int | None, before: int | None, limit: int
    ) -> list[MessageRecord]:
        return self._in_session(reads.history, owner, conversation_id, after, before, limit)

    def find_context(self, owner: str, conversation_id: str, limit: int, before: int | None = None) -> ContextRecord:
        return self._in_session(reads.find_context, owner, conversation_id, limit, before)

    def store_token_counts(self, owner: str, conversation_id: str, estimator: str, counts: dict[int, int]) -> None:
        self._in_session(writes.store_token_counts, estimator, counts)

    def count_messages(self, owner: str, conversation_id: str) -> int:
        return self._in_session(reads.count_messages, owner, conversation_id)

    def delete_messages(self, owner: str, conversation_id: str, message_ids: Sequence[str]) -> int:
        return self._in_session(writes.delete_messages, owner, conversation_id, message_ids)

    def get_conversation(self, owner: str, conversation_id: str) -> ConversationRecord | None:
        return self._in_session(reads.get_conversation, owner, conversation_id)

    def update_conversation(
        self, owner: str, conversation_id: str, title: str | Unset | None, metadata: str | Unset | None
    ) -> ConversationRecord | None:
        return self._in_session(writes.update_conversation, owner, conversation_id, title, metadata)

    def list_conversations(
        self, owner: str, order: Literal["id", "updated"], after: DirectoryKey | None, limit: int
    ) -> list[ConversationRecord]:
        return self._in_session(reads.list_conversations, owner, order, after, limit)

    def now(self) -> dt.datetime:
        return self._in_session(purges.now)

    def purge_expired(self, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
        return self._in_session(purges.purge_expired, owner, before, batch_size, dry_run)

    def purge_idle(self, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
        return self._in_session(purges.purge_idle, owner, before, batch_size, dry_run)

    def vectors(self, model: str, distance: str | None) -> VectorTables:
        if not self.capabilities.vectors:
            return super().vectors(model, distance)
        module = importlib.import_module(f"chatkeep.backends.relational.{self.name}_vectors")
        tables: VectorTables = module.VECTORS(self, self.database, model, distance)
        return tables

    def describe(self) -> dict[str, str]:
        with self.database.session() as session:
            return session.dialect.describe(session)

    def close(self) -> None:
        self.database.close()
