"""Every public operation, once: check, encode, delegate to the backend, decode. Knows neither sync nor async.

Each method checks and encodes at once, before any I/O, and returns a Call that a runner executes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

from chatkeep.capabilities import Capabilities
from chatkeep.conversation import Conversation, HistoryEntry, Page, PurgeReport
from chatkeep.errors import ConversationNotFoundError, InvalidMessageError, UnsupportedOperationError
from chatkeep.identifiers import check_conversation_id, check_message_id, check_owner, check_title
from chatkeep.message import Message
from chatkeep.storage import checks, codec
from chatkeep.storage.backend import Backend, DirectoryKey, Write
from chatkeep.storage.jsontext import dump_json
from chatkeep.storage.record import UNSET, ConversationRecord, MessageRecord, Never, Purged, Unset
from chatkeep.storage.runner import Call
from chatkeep.times import utc
from chatkeep.values import copied_object

T = TypeVar("T")


class Calls:
    """Prepares calls of one owner on one backend."""

    def __init__(
        self, backend: Backend, owner: str = "", ttl: dt.timedelta | None = None, *, keep_unreadable: bool = False
    ) -> None:
        self.backend = backend
        self.owner = check_owner(owner)
        self.ttl = checks.check_ttl(ttl)
        self.keep_unreadable = keep_unreadable
        if self.ttl is not None:
            self._require("ttl")

    @property
    def capabilities(self) -> Capabilities:
        return self.backend.capabilities

    def for_owner(self, owner: str) -> Calls:
        return Calls(self.backend, owner, self.ttl, keep_unreadable=self.keep_unreadable)

    # --- reads ---

    def find_conversation_ids(self) -> Call[list[str]]:
        return Call(lambda _: self.backend.find_conversation_ids(self.owner), repeatable=True)

    def find_by_conversation_id(self, conversation_id: str, limit: int | None) -> Call[list[Message]]:
        check_conversation_id(conversation_id)
        newest = None if limit is None else checks.check_limit(limit)
        if newest == 0:
            return Call(lambda _: [], repeatable=True)

        def work(_: bool) -> list[Message]:
            return self.decode(conversation_id, self.backend.find_messages(self.owner, conversation_id, newest))

        return Call(work, repeatable=True)

    def history(
        self, conversation_id: str, after: int | str | None, before: int | str | None, limit: int
    ) -> Call[Page[HistoryEntry]]:
        check_conversation_id(conversation_id)
        low = checks.check_position(after, "after")
        high = checks.check_position(before, "before")
        limit = checks.check_limit(limit)
        if limit == 0:
            return Call(lambda _: Page([]), repeatable=True)

        def work(_: bool) -> Page[HistoryEntry]:
            # One more than asked for tells whether there is a next page.
            records = self.backend.history(self.owner, conversation_id, low, high, limit + 1)
            backwards = low is None and high is not None
            more = len(records) > limit
            shown = records[-limit:] if backwards else records[:limit]
            edge = shown[0 if backwards else -1].position if more else 0
            messages = self.decode(conversation_id, shown)
            return Page(
                [_entry(record, message) for record, message in zip(shown, messages, strict=True)],
                checks.position_cursor(edge) if more else None,
            )

        return Call(work, repeatable=True)

    def count_messages(self, conversation_id: str) -> Call[int]:
        check_conversation_id(conversation_id)
        return Call(lambda _: self.backend.count_messages(self.owner, conversation_id), repeatable=True)

    def get_conversation(self, conversation_id: str) -> Call[Conversation | None]:
        check_conversation_id(conversation_id)

        def work(_: bool) -> Conversation | None:
            record = self.backend.get_conversation(self.owner, conversation_id)
            return None if record is None else self._entry_of(record)

        return Call(work, repeatable=True)

    def list_conversations(
        self, limit: int, cursor: str | None, order: Literal["id", "updated"]
    ) -> Call[Page[Conversation]]:
        checks.check_order(order)
        after = checks.check_directory_cursor(cursor, order)
        limit = checks.check_limit(limit)
        if limit == 0:
            return Call(lambda _: Page([]), repeatable=True)

        def work(_: bool) -> Page[Conversation]:
            records = self.backend.list_conversations(self.owner, order, after, limit + 1)
            items = [self._entry_of(record) for record in records[:limit]]
            if len(records) <= limit:
                return Page(items)
            last = items[-1]
            key = DirectoryKey(last.id, last.updated_at if order == "updated" else None)
            return Page(items, checks.directory_cursor(order, key))

        return Call(work, repeatable=True)

    # --- writes ---

    def append(
        self,
        conversation_id: str,
        messages: Message | Iterable[Message],
        expected_version: int | None,
        ttl: dt.timedelta | Never | None,
    ) -> Call[int]:
        write = self._write(conversation_id, messages, expected_version, ttl)
        if not write.records:
            # Nothing to add, but an expected version is still a question that deserves an answer.
            return Call(lambda _: self._unchanged(write), repeatable=True)
        return Call(lambda again: self.backend.append(write, reconcile=again), repeatable=True)

    def save_all(
        self,
        conversation_id: str,
        messages: Iterable[Message],
        expected_version: int | None,
        ttl: dt.timedelta | Never | None,
    ) -> Call[int]:
        write = self._write(conversation_id, messages, expected_version, ttl)
        # After a lost reply a conditional write can't tell its own success from another writer's.
        return Call(lambda _: self.backend.replace(write), repeatable=expected_version is None)

    def delete_by_conversation_id(self, conversation_id: str) -> Call[bool]:
        check_conversation_id(conversation_id)
        # Found nothing on a repeated try: the first one may have deleted it.
        return Call(lambda again: self.backend.delete(self.owner, conversation_id) or again, repeatable=True)

    def delete_messages(self, conversation_id: str, message_ids: Iterable[str]) -> Call[int]:
        check_conversation_id(conversation_id)
        if isinstance(message_ids, (str, bytes)) or not isinstance(message_ids, Iterable):
            raise TypeError(f"message_ids: expected an iterable of ids, got {type(message_ids).__name__}")
        ids = list(dict.fromkeys(check_message_id(message_id) for message_id in message_ids))
        if not ids:
            return Call(lambda _: 0, repeatable=True)
        return Call(lambda _: self.backend.delete_messages(self.owner, conversation_id, ids), repeatable=False)

    def update_conversation(
        self, conversation_id: str, title: str | Unset | None, metadata: dict[str, Any] | Unset
    ) -> Call[Conversation]:
        check_conversation_id(conversation_id)
        self._require("conversation_metadata")
        new_title = title if title is UNSET else check_title(title)
        new_metadata: str | Unset | None = UNSET
        if metadata is not UNSET:
            new_metadata = dump_json(copied_object(metadata, "metadata")) if metadata != {} else None
            self._check_metadata_size(new_metadata)

        def work(_: bool) -> Conversation:
            record = self.backend.update_conversation(self.owner, conversation_id, new_title, new_metadata)
            if record is None:
                raise ConversationNotFoundError(f"conversation {conversation_id!r} does not exist; append to it first")
            return self._entry_of(record)

        return Call(work, repeatable=True)

    # --- retention ---

    def purge_expired(self, batch_size: int, dry_run: bool) -> Call[PurgeReport]:
        return self._purge(self.backend.purge_expired, dt.timedelta(0), batch_size, dry_run)

    def purge_idle(self, older_than: dt.timedelta, batch_size: int, dry_run: bool) -> Call[PurgeReport]:
        return self._purge(self.backend.purge_idle, checks.check_older_than(older_than), batch_size, dry_run)

    def _purge(
        self,
        batch: Callable[[str, dt.datetime, int, bool], Purged],
        age: dt.timedelta,
        batch_size: int,
        dry_run: bool,
    ) -> Call[PurgeReport]:
        self._require("purge")
        size = checks.check_limit(batch_size, "batch_size")
        if size == 0:
            raise ValueError("batch_size: expected 1 or more, got 0")
        counted = [0, 0]  # outside of work: batches that were reported before a retry stay counted

        def work(_: bool) -> PurgeReport:
            before = self.backend.now() - age
            while True:
                purged = batch(self.owner, before, size, dry_run)
                counted[0] += purged.messages
                counted[1] += purged.conversations
                if not purged.more:
                    return PurgeReport(messages=counted[0], conversations=counted[1], dry_run=dry_run)

        return Call(work, repeatable=True)

    # --- helpers ---

    def _write(
        self,
        conversation_id: str,
        messages: Message | Iterable[Message],
        expected_version: int | None,
        ttl: dt.timedelta | Never | None,
    ) -> Write:
        check_conversation_id(conversation_id)
        version = checks.check_version(expected_version)
        life = checks.effective_ttl(ttl, self.ttl)
        if version is not None:
            self._require("conditional_writes")
        if life.life is not None:
            self._require("ttl")
        return Write(self.owner, conversation_id, self._encode(messages), life, version)

    def _encode(self, messages: Message | Iterable[Message]) -> list[MessageRecord]:
        if isinstance(messages, Message):
            messages = (messages,)
        elif isinstance(messages, (str, bytes, dict)) or not isinstance(messages, Iterable):
            raise TypeError(
                f"messages: expected a Message or an iterable of them, got {type(messages).__name__}; "
                f'did you mean Message.user("…")?'
            )
        limit = self.capabilities.max_message_bytes
        records: dict[str, MessageRecord] = {}
        for index, message in enumerate(messages):
            record = codec.encode(message, f"messages[{index}]", limit)
            earlier = records.setdefault(record.message_id, record)
            if earlier is not record and not codec.same_content(earlier, record):
                raise InvalidMessageError(
                    f"messages[{index}]: message id {record.message_id!r} stands twice with different content"
                )
        return list(records.values())

    def _unchanged(self, write: Write) -> int:
        from chatkeep.errors import ConcurrentChangeError

        actual = self.backend.current_version(write.owner, write.conversation_id)
        if write.expected_version is not None and actual != write.expected_version:
            raise ConcurrentChangeError(write.conversation_id, expected=write.expected_version, actual=actual)
        return actual

    def decode(self, conversation_id: str, records: Iterable[MessageRecord]) -> list[Message]:
        """The messages of stored records; StoredDataError or an opaque part for what can't be read, as was chosen."""
        keep = self.keep_unreadable
        return [codec.decode(record, conversation_id, keep_unreadable=keep) for record in records]

    def _entry_of(self, record: ConversationRecord) -> Conversation:
        return _conversation(record, keep_unreadable=self.keep_unreadable)

    def _check_metadata_size(self, metadata: str | None) -> None:
        limit = self.capabilities.max_message_bytes
        if metadata is not None and len(metadata.encode()) > limit:
            raise ValueError(f"metadata: {len(metadata.encode()):,} bytes, the limit is {limit:,}")

    def _require(self, capability: str) -> None:
        if not getattr(self.capabilities, capability):
            raise UnsupportedOperationError(
                f"the {self.backend.name} backend does not offer {capability!r}; see repository.capabilities"
            )


def _entry(record: MessageRecord, message: Message) -> HistoryEntry:
    return HistoryEntry(
        position=record.position,
        message=message,
        expires_at=None if record.expires_at is None else utc(record.expires_at),
        token_count=record.token_count,
    )


def _conversation(record: ConversationRecord, *, keep_unreadable: bool) -> Conversation:
    return Conversation(
        id=record.conversation_id,
        owner=record.owner,
        title=record.title,
        metadata=codec.decode_metadata(record, keep_unreadable=keep_unreadable),
        created_at=utc(record.created_at),
        updated_at=utc(record.updated_at),
        version=record.version,
        message_count=record.message_count,
    )
