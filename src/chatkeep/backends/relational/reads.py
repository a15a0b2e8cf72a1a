"""Reads on SQL engines: plain functions over a session, each one statement."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal

from chatkeep.backends.relational.dialect import Dialect
from chatkeep.backends.relational.session import Session
from chatkeep.storage.backend import DirectoryKey
from chatkeep.storage.record import ContextRecord, ConversationRecord, MessageRecord

LOWEST, HIGHEST = -1, 2**63 - 1


def find_conversation_ids(session: Session, owner: str) -> list[str]:
    return [row[0] for row in session.rows(session.dialect.sql("SELECT_CONVERSATION_IDS"), {"owner": owner})]


def find_messages(session: Session, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
    dialect = session.dialect
    of = {"owner": owner, "conversation_id": conversation_id}
    if limit is None:
        rows = session.rows(dialect.sql("SELECT_MESSAGES"), of)
    else:
        rows = session.rows(dialect.sql_with_limit("SELECT_NEWEST_MESSAGES", limit), {**of, "limit": limit})[::-1]
    return [dialect.message(row) for row in rows]


def history(
    session: Session, owner: str, conversation_id: str, after: int | None, before: int | None, limit: int
) -> list[MessageRecord]:
    dialect = session.dialect
    backwards = after is None and before is not None
    bounds = {"after": LOWEST if after is None else after, "before": HIGHEST if before is None else before}
    statement = dialect.sql_with_limit("SELECT_HISTORY_BACKWARDS" if backwards else "SELECT_HISTORY", limit)
    rows = session.rows(statement, {"owner": owner, "conversation_id": conversation_id, "limit": limit, **bounds})
    return [dialect.message(row) for row in (rows[::-1] if backwards else rows)]


def find_context(session: Session, owner: str, conversation_id: str, limit: int, before: int | None) -> ContextRecord:
    dialect = session.dialect
    of: dict[str, Any] = {"owner": owner, "conversation_id": conversation_id, "limit": limit}
    name = "SELECT_CONTEXT"
    if before is not None:
        name, of = "SELECT_CONTEXT_BELOW", {**of, "before": before}
    rows = session.rows(dialect.sql_with_limit(name, limit), of)
    found = ContextRecord([])
    for row in rows:
        if row[0]:
            found.version, found.start = int(row[0]), int(row[1])
            found.system = None if row[2] is None else _counted_message(dialect, row)
            rows.remove(row)  # a union has no order of its own, but the first row is the usual place
            break
    start = found.start
    newest = [record for record in (_counted_message(dialect, row) for row in rows) if record.position > start]
    newest.sort(key=_position)
    found.messages = newest
    return found


def _counted_message(dialect: Dialect, row: Sequence[Any]) -> MessageRecord:
    """A message of SELECT_CONTEXT, whose last column says who counted its tokens."""
    record = dialect.message(row[2:10])
    record.token_estimator = row[10]
    return record


_position = operator.attrgetter("position")


def count_messages(session: Session, owner: str, conversation_id: str) -> int:
    return _number(session, "COUNT_MESSAGES", owner, conversation_id)


def current_version(session: Session, owner: str, conversation_id: str) -> int:
    return _number(session, "SELECT_VERSION", owner, conversation_id)


def get_conversation(session: Session, owner: str, conversation_id: str) -> ConversationRecord | None:
    row = session.row(session.dialect.sql("SELECT_CONVERSATION"), {"owner": owner, "conversation_id": conversation_id})
    return None if row is None else _conversation(session, row)


def list_conversations(
    session: Session, owner: str, order: Literal["id", "updated"], after: DirectoryKey | None, limit: int
) -> list[ConversationRecord]:
    dialect = session.dialect
    name = "LIST_BY_ID" if order == "id" else "LIST_BY_UPDATE"
    parameters: dict[str, Any] = {"owner": owner, "limit": limit}
    if after is not None:
        name += "_AFTER"
        parameters["after_id"] = after.conversation_id
        if order == "updated":
            parameters["after_time"] = dialect.to_time(after.updated_at)
    return [_conversation(session, row) for row in session.rows(dialect.sql(name), parameters)]


def _number(session: Session, name: str, owner: str, conversation_id: str) -> int:
    row = session.row(session.dialect.sql(name), {"owner": owner, "conversation_id": conversation_id})
    return 0 if row is None else int(row[0])


def _conversation(session: Session, row: Sequence[Any]) -> ConversationRecord:
    dialect = session.dialect
    conversation_id, owner, title, metadata, created_at, updated_at, version, count = row
    return ConversationRecord(
        conversation_id,
        owner,
        title,
        metadata,
        dialect.from_time(created_at),
        dialect.from_time(updated_at),
        version,
        count,
    )
