"""Writes on SQL engines: plain functions over a session, read top to bottom.

Each locks the conversation's row first, so that writers queue up one behind the other, and allocates positions under
that lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from chatkeep.backends.relational import reads
from chatkeep.backends.relational.session import Session
from chatkeep.backends.relational.statements import NUMBERS
from chatkeep.errors import ConcurrentChangeError, ContentionError
from chatkeep.storage.backend import SYSTEM_ROLES, Write, message_id_taken
from chatkeep.storage.codec import same_content
from chatkeep.storage.record import UNSET, ConversationRecord, MessageRecord, Unset

COUNTS_AT_ONCE = 200
"""Two values each; old SQLite takes 999 of them in a statement."""


class Head(msgspec.Struct):
    """The locked row of a conversation. Numbers as in the tables, times as the driver gives them."""

    key: int
    version: int
    last_position: int
    system_position: int | None
    context_start: int
    message_count: int
    expires_at: Any
    now: Any

    @property
    def public_version(self) -> int:
        return self.key * NUMBERS + self.version

    def is_past(self, expires_at: Any) -> bool:
        """Whether a time as the driver gives it has come; such times compare in the order of time."""
        return bool(expires_at is not None and expires_at <= self.now)


def append(session: Session, write: Write, *, reconcile: bool) -> int:
    """Store the messages; a DuplicateKeyError says that some id is stored already and asks for `reconcile`.

    With `reconcile`, or where the expected version is stale, messages that are stored with the same content are left
    out; a call of which nothing is left has been applied before.
    """
    restart = write.context == "restart"
    if not reconcile and not restart:
        version = session.dialect.append_at_once(session, write)
        if version is not None:
            return version
    with session.transaction():
        if write.records:
            head, created = _lock_or_create(session, write)
        else:
            found, created = _lock(session, write.owner, write.conversation_id), False
            if found is None:
                return 0
            head = found
        actual = 0 if created else head.public_version
        stale = write.expected_version not in (None, actual)
        if restart:
            head.context_start = head.last_position
        new = _unstored(session, head, write) if reconcile or stale or restart else write.records
        if not new and not restart:
            return head.public_version
        if stale:
            raise _stale(write, actual)
        return _add(session, head, write, new)


def replace(session: Session, write: Write) -> int:
    dialect = session.dialect
    with session.transaction():
        head, created = _lock_or_create(session, write)
        actual = 0 if created else head.public_version
        if write.expected_version not in (None, actual):
            raise _stale(write, actual)
        expiries: dict[str, Any] = {}
        # Where nothing stored can expire and nothing new will, there is no expiry to keep.
        can_expire = head.expires_at is not None or write.ttl.life is not None
        if not created and not write.ttl.explicit and can_expire:
            expiries = dict(session.rows(dialect.sql("SELECT_EXPIRIES"), {"conversation_key": head.key}))
        if not created:
            session.defer(dialect.sql("DELETE_MESSAGES"), {"conversation_key": head.key})
        head.message_count, head.expires_at, head.system_position = 0, None, None
        return _add(session, head, write, write.records, expiries)


def store_token_counts(session: Session, estimator: str, counts: dict[int, int]) -> None:
    """By public position, in which the conversation's key is."""
    places = sorted(counts)
    for start in range(0, len(places), COUNTS_AT_ONCE):
        values: dict[str, Any] = {"token_estimator": estimator, "conversation_key": places[0] // NUMBERS}
        chunk = places[start : start + COUNTS_AT_ONCE]
        for number, position in enumerate(chunk):
            values[f"position{number}"] = position % NUMBERS
            values[f"token_count{number}"] = counts[position]
        cases = " ".join(f"WHEN :position{number} THEN :token_count{number}" for number in range(len(chunk)))
        positions = ", ".join(f":position{number}" for number in range(len(chunk)))
        session.run(session.dialect.sql("UPDATE_COUNTS", cases=cases, positions=positions), values)


def delete(session: Session, owner: str, conversation_id: str) -> bool:
    with session.transaction():
        head = _lock(session, owner, conversation_id)
        if head is not None:
            delete_locked(session, head.key)
    return head is not None


def delete_messages(session: Session, owner: str, conversation_id: str, message_ids: Sequence[str]) -> int:
    dialect = session.dialect
    with session.transaction():
        head = _lock(session, owner, conversation_id)
        if head is None:
            return 0
        of = {"conversation_key": head.key}
        stored = dict(session.rows_by_id("SELECT_STORED_EXPIRIES", message_ids, of))
        live = sum(1 for expires_at in stored.values() if not head.is_past(expires_at))
        if stored:
            session.run_by_id("DELETE_MESSAGES_BY_ID", list(stored), of)
            head.message_count -= len(stored)
        if live:
            _update(session, head)
        elif stored:
            session.defer(
                dialect.sql("UPDATE_CONVERSATION_COUNT"),
                {"conversation_key": head.key, "message_count": head.message_count},
            )
        return live


def update_conversation(
    session: Session, owner: str, conversation_id: str, title: str | Unset | None, metadata: str | Unset | None
) -> ConversationRecord | None:
    dialect = session.dialect
    of = {"owner": owner, "conversation_id": conversation_id}
    with session.transaction():
        if title is not UNSET:
            session.defer(dialect.sql("UPDATE_TITLE"), {**of, "title": title})
        if metadata is not UNSET:
            session.defer(dialect.sql("UPDATE_METADATA"), {**of, "metadata": metadata})
        return reads.get_conversation(session, owner, conversation_id)


# --- steps within a transaction ---


def _lock(session: Session, owner: str, conversation_id: str) -> Head | None:
    row = session.row(session.dialect.sql("LOCK_CONVERSATION"), {"owner": owner, "conversation_id": conversation_id})
    return None if row is None else Head(*row)


def _lock_or_create(session: Session, write: Write) -> tuple[Head, bool]:
    """The locked conversation and whether this transaction made it."""
    of = {"owner": write.owner, "conversation_id": write.conversation_id}
    created = False
    # More than one round only where others delete what was just found.
    for _ in range(10):
        head = _lock(session, write.owner, write.conversation_id)
        if head is not None:
            return head, created
        created = session.run(session.dialect.sql("INSERT_CONVERSATION"), of) == 1
    raise ContentionError(
        f"{session.dialect.name}: conversation {write.conversation_id!r} was deleted again and again meanwhile",
        backend=session.dialect.name,
    )


def _stale(write: Write, actual: int) -> ConcurrentChangeError:
    return ConcurrentChangeError(write.conversation_id, expected=write.expected_version or 0, actual=actual)


def _add(
    session: Session,
    head: Head,
    write: Write,
    records: Sequence[MessageRecord],
    expiries: dict[str, Any] | None = None,
) -> int:
    """Insert `records` behind the last position and bring the conversation's row up to date."""
    dialect = session.dialect
    default = None
    if write.ttl.life is not None:
        default = dialect.to_time(dialect.from_time(head.now) + write.ttl.life)
    rows = []
    for record in records:
        head.last_position += 1
        expires_at = default if expiries is None else expiries.get(record.message_id, default)
        if expires_at is not None:
            head.expires_at = expires_at if head.expires_at is None else min(head.expires_at, expires_at)
        if record.role in SYSTEM_ROLES:
            head.system_position = head.last_position
        rows.append(
            {
                "conversation_key": head.key,
                "position": head.last_position,
                "message_id": record.message_id,
                "role": record.role,
                "content": record.content,
                "body": record.body,
                "token_count": record.token_count,
                "token_estimator": record.token_estimator,
                "created_at": dialect.to_time(record.created_at),
                "expires_at": expires_at,
            }
        )
    for chunk in _chunks(rows, dialect.rows_per_insert, dialect.bytes_per_insert):
        dialect.insert_messages(session, chunk)
    head.message_count += len(rows)
    return _update(session, head)


def _update(session: Session, head: Head) -> int:
    head.version += 1
    session.defer(
        session.dialect.sql("UPDATE_CONVERSATION"),
        {
            "conversation_key": head.key,
            "version": head.version,
            "last_position": head.last_position,
            "system_position": head.system_position,
            "context_start": head.context_start,
            "message_count": head.message_count,
            "expires_at": head.expires_at,
        },
    )
    return head.public_version


def _unstored(session: Session, head: Head, write: Write) -> list[MessageRecord]:
    stored = _stored(session, head, [record.message_id for record in write.records])
    gone = {message_id for message_id, record in stored.items() if _expired(session, head, record)}
    new = []
    for record in write.records:
        earlier = None if record.message_id in gone else stored.get(record.message_id)
        if earlier is not None and not same_content(earlier, record):
            raise message_id_taken(record.message_id, write.conversation_id)
        if earlier is None:
            new.append(record)
        elif write.context != "ignore" and _left_context(head, earlier):
            gone.add(record.message_id)
            new.append(record)
    if gone:
        session.run_by_id("DELETE_MESSAGES_BY_ID", sorted(gone), {"conversation_key": head.key})
        head.message_count -= len(gone)
    return new


def _left_context(head: Head, record: MessageRecord) -> bool:
    # SELECT_STORED gives positions as the tables hold them.
    replaced = record.role in SYSTEM_ROLES and record.position != head.system_position
    return replaced or record.position <= head.context_start


def _stored(session: Session, head: Head, message_ids: Sequence[str]) -> dict[str, MessageRecord]:
    rows = session.rows_by_id("SELECT_STORED", message_ids, {"conversation_key": head.key})
    return {record.message_id: record for record in map(session.dialect.message, rows)}


def _expired(session: Session, head: Head, record: MessageRecord) -> bool:
    return record.expires_at is not None and record.expires_at <= session.dialect.from_time(head.now)


def delete_locked(session: Session, key: int) -> None:
    session.defer(session.dialect.sql("DELETE_MESSAGES"), {"conversation_key": key})
    session.defer(session.dialect.sql("DELETE_CONVERSATION"), {"conversation_key": key})


def _chunks(rows: list[dict[str, Any]], most_rows: int, most_bytes: int) -> list[list[dict[str, Any]]]:
    chunks: list[list[dict[str, Any]]] = []
    size = 0
    for row in rows:
        length = _bytes(row["content"]) + _bytes(row["body"] or "") + _bytes(row["message_id"])
        size += length
        if not chunks or size > most_bytes or len(chunks[-1]) == most_rows:
            chunks.append([])
            size = length
        chunks[-1].append(row)
    return chunks


def _bytes(text: str) -> int:
    """As UTF-8; an upper bound where that would take a pass of its own."""
    return len(text) if text.isascii() else 4 * len(text)
