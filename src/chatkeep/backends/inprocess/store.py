"""Conversations in this process's memory: the reference implementation of every verb, a dict and a lock."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from chatkeep.backends.inprocess.space import CAPABILITIES, Space, Stored
from chatkeep.errors import ConcurrentChangeError
from chatkeep.storage.backend import SYSTEM_ROLES, Backend, DirectoryKey, Write, message_id_taken
from chatkeep.storage.codec import same_content
from chatkeep.storage.record import UNSET, ContextRecord, ConversationRecord, MessageRecord, Purged, Unset


class InProcessBackend(Backend):
    """A handle on a space. Each verb holds the space's lock from its first look to its last change."""

    name = "inprocess"
    capabilities = CAPABILITIES
    bridge = "inline"

    def __init__(self, space: Space) -> None:
        self._space = space

    def find_conversation_ids(self, owner: str) -> list[str]:
        with self._space.lock.now:
            return sorted(key[1] for key in self._space.conversations if key[0] == owner)

    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            if conversation is None:
                return []
            newest = itertools.islice(_live(reversed(conversation.messages.values())), limit)
            return list(newest)[::-1]

    def find_context(self, owner: str, conversation_id: str, limit: int, before: int | None = None) -> ContextRecord:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            if conversation is None:
                return ContextRecord([])
            start = conversation.context_start
            rows = itertools.takewhile(lambda row: row.position > start, reversed(conversation.messages.values()))
            newest = itertools.islice((row for row in _live(rows) if before is None or row.position < before), limit)
            system = conversation.messages.get(conversation.system_id)
            if system is not None and (system.position <= start or not list(_live([system]))):
                system = None
            return ContextRecord(list(newest)[::-1], system, conversation.record.version, start)

    def append(self, write: Write, *, reconcile: bool = False) -> int:
        with self._space.lock.now:
            conversation = self._get(write.owner, write.conversation_id)
            restart = write.context == "restart"
            if conversation is None and not write.records:
                return 0
            start = 0 if conversation is None else conversation.context_start
            if conversation is not None and restart and conversation.messages:
                start = next(reversed(conversation.messages.values())).position
            new = write.records if conversation is None else self._unstored(conversation, write, start)
            if conversation is not None and not new and not restart:
                return conversation.record.version
            self._check_version(write, conversation)
            # Everything is prepared first: an interrupt in between leaves the conversation as it was.
            record = self._changed(write, conversation)
            expires_at = _expiry(write)
            rows = {new_row.message_id: self._placed(new_row, expires_at) for new_row in new}
            system = _newest_system(rows.values())
            if conversation is None:
                self._space.conversations[write.owner, write.conversation_id] = Stored(record, rows, 0, system)
            else:
                for message_id in rows.keys() & conversation.messages.keys():
                    del conversation.messages[message_id]  # expired or outside of the context: it goes to the end
                conversation.messages.update(rows)
                conversation.context_start = start
                conversation.system_id = system or conversation.system_id
                conversation.record = record
            return record.version

    def replace(self, write: Write) -> int:
        with self._space.lock.now:
            conversation = self._get(write.owner, write.conversation_id)
            self._check_version(write, conversation)
            record = self._changed(write, conversation)
            stored: dict[str, MessageRecord] = {}
            if conversation is not None and not write.ttl.explicit:
                stored = {row.message_id: row for row in _live(conversation.messages.values())}
            rows = {}
            expires_at = _expiry(write)
            for new_row in write.records:
                earlier = stored.get(new_row.message_id)
                rows[new_row.message_id] = self._placed(new_row, earlier.expires_at if earlier else expires_at)
            system = _newest_system(rows.values())
            start = 0 if conversation is None else conversation.context_start
            self._space.conversations[write.owner, write.conversation_id] = Stored(record, rows, start, system)
            return record.version

    def store_token_counts(self, owner: str, conversation_id: str, estimator: str, counts: dict[int, int]) -> None:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            for row in () if conversation is None else conversation.messages.values():
                if row.position in counts:
                    row.token_count, row.token_estimator = counts[row.position], estimator

    def current_version(self, owner: str, conversation_id: str) -> int:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            return 0 if conversation is None else conversation.record.version

    def delete(self, owner: str, conversation_id: str) -> bool:
        with self._space.lock.now:
            return self._space.conversations.pop((owner, conversation_id), None) is not None

    def history(
        self, owner: str, conversation_id: str, after: int | None, before: int | None, limit: int
    ) -> list[MessageRecord]:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            if conversation is None:
                return []
            within = [
                record
                for record in _live(conversation.messages.values())
                if (after is None or record.position > after) and (before is None or record.position < before)
            ]
            return within[-limit:] if after is None and before is not None else within[:limit]

    def count_messages(self, owner: str, conversation_id: str) -> int:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            return 0 if conversation is None else sum(1 for _ in _live(conversation.messages.values()))

    def delete_messages(self, owner: str, conversation_id: str, message_ids: Sequence[str]) -> int:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            if conversation is None:
                return 0
            found = [conversation.messages[each] for each in message_ids if each in conversation.messages]
            deleted = sum(1 for _ in _live(found))
            record = self._touched(conversation.record) if deleted else conversation.record
            for row in found:
                del conversation.messages[row.message_id]
            conversation.record = record
            return deleted

    def get_conversation(self, owner: str, conversation_id: str) -> ConversationRecord | None:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            return None if conversation is None else _counted(conversation)

    def update_conversation(
        self, owner: str, conversation_id: str, title: str | Unset | None, metadata: str | Unset | None
    ) -> ConversationRecord | None:
        with self._space.lock.now:
            conversation = self._get(owner, conversation_id)
            if conversation is None:
                return None
            if title is not UNSET:
                conversation.record.title = title
            if metadata is not UNSET:
                conversation.record.metadata = metadata
            return _counted(conversation)

    def list_conversations(
        self, owner: str, order: Literal["id", "updated"], after: DirectoryKey | None, limit: int
    ) -> list[ConversationRecord]:
        def key(record: ConversationRecord) -> tuple[dt.timedelta, str]:
            # Newest first and ids ascending, as one ascending key.
            age = _EPOCH - record.updated_at if order == "updated" else dt.timedelta(0)
            return age, record.conversation_id

        with self._space.lock.now:
            found = sorted(
                (entry.record for (of, _), entry in self._space.conversations.items() if of == owner), key=key
            )
            if after is not None:
                moved = dt.timedelta(0) if after.updated_at is None else _EPOCH - after.updated_at
                found = [record for record in found if key(record) > (moved, after.conversation_id)]
            return [_counted(self._space.conversations[owner, record.conversation_id]) for record in found[:limit]]

    def now(self) -> dt.datetime:
        return _now()

    def purge_expired(self, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
        # In one batch: there is no transaction to keep small, and a second pass would look at everything again.
        purged = Purged()
        with self._space.lock.now:
            for (of, conversation_id), conversation in list(self._space.conversations.items()):
                if of != owner:
                    continue
                expired = [
                    row.message_id
                    for row in conversation.messages.values()
                    if row.expires_at is not None and row.expires_at <= before
                ]
                purged.messages += len(expired)
                whole = bool(expired) and len(expired) == len(conversation.messages)
                purged.conversations += whole
                if dry_run:
                    continue
                if whole:
                    del self._space.conversations[owner, conversation_id]
                for message_id in expired:
                    del conversation.messages[message_id]
        return purged

    def purge_idle(self, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
        purged = Purged()
        with self._space.lock.now:
            for key, conversation in list(self._space.conversations.items()):
                if key[0] == owner and conversation.record.updated_at < before:
                    purged.conversations += 1
                    purged.messages += len(conversation.messages)
                    if not dry_run:
                        del self._space.conversations[key]
        return purged

    def close(self) -> None:
        # The space lives as long as a handle or the registry of names refers to it.
        self._space = Space()

    # --- steps; the caller holds the lock ---

    def _get(self, owner: str, conversation_id: str) -> Stored | None:
        return self._space.conversations.get((owner, conversation_id))

    def _changed(self, write: Write, conversation: Stored | None) -> ConversationRecord:
        """The conversation's record after the write, not yet in its place."""
        if conversation is not None:
            return self._touched(conversation.record)
        now = _now()
        return ConversationRecord(
            write.conversation_id, write.owner, None, None, now, now, next(self._space.numbers), 0
        )

    def _touched(self, record: ConversationRecord) -> ConversationRecord:
        return msgspec.structs.replace(record, version=next(self._space.numbers), updated_at=_now())

    def _placed(self, record: MessageRecord, expires_at: dt.datetime | None) -> MessageRecord:
        return msgspec.structs.replace(record, position=next(self._space.numbers), expires_at=expires_at)

    def _unstored(self, conversation: Stored, write: Write, context_start: int) -> list[MessageRecord]:
        earlier = (conversation.messages.get(record.message_id) for record in write.records)
        stored = {record.message_id: record for record in _live(record for record in earlier if record is not None)}
        for record in write.records:
            if record.message_id in stored and not same_content(stored[record.message_id], record):
                raise message_id_taken(record.message_id, write.conversation_id)

        def stays(row: MessageRecord) -> bool:
            replaced = row.role in SYSTEM_ROLES and row.message_id != conversation.system_id
            return write.context == "ignore" or (row.position > context_start and not replaced)

        return [
            record
            for record in write.records
            if record.message_id not in stored or not stays(stored[record.message_id])
        ]

    def _check_version(self, write: Write, conversation: Stored | None) -> None:
        actual = 0 if conversation is None else conversation.record.version
        if write.expected_version is not None and write.expected_version != actual:
            raise ConcurrentChangeError(write.conversation_id, expected=write.expected_version, actual=actual)


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _expiry(write: Write) -> dt.datetime | None:
    return None if write.ttl.life is None else _now() + write.ttl.life


def _newest_system(rows: Iterable[MessageRecord]) -> str:
    return next((row.message_id for row in reversed(list(rows)) if row.role in SYSTEM_ROLES), "")


def _live(records: Iterable[MessageRecord]) -> Iterator[MessageRecord]:
    now = _now()
    return (record for record in records if record.expires_at is None or record.expires_at > now)


def _counted(conversation: Stored) -> ConversationRecord:
    return msgspec.structs.replace(
        conversation.record, message_count=sum(1 for _ in _live(conversation.messages.values()))
    )
