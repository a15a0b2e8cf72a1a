"""The references: what one would write by hand for these two tasks over the same tables, and no more than that.

Values are bound, commits are as durable as chatkeep's, psycopg prepares the statements by itself. There is no pool, no
retry, no expiry and no check of what is written or read.
"""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import uuid
from collections.abc import Sequence
from typing import Any

from benchmarks.messages import WINDOW

POSTGRESQL_APPEND = """
    WITH head AS (
        UPDATE chat_conversation
        SET version = version + 1, last_position = last_position + 2, message_count = message_count + 2,
            updated_at = clock_timestamp()
        WHERE owner = %(owner)s AND conversation_id = %(conversation_id)s
        RETURNING conversation_key, version, last_position - 2 AS base
    ), stored AS (
        INSERT INTO chat_message (conversation_key, position, message_id, role, content, created_at)
        SELECT head.conversation_key, head.base + m.n, m.message_id, m.role, m.content, m.created_at
        FROM head CROSS JOIN (VALUES (1, %(id_1)s, %(role_1)s, %(content_1)s, %(now)s::timestamptz),
                                     (2, %(id_2)s, %(role_2)s, %(content_2)s, %(now)s::timestamptz))
                      AS m (n, message_id, role, content, created_at)
    )
    SELECT conversation_key, version FROM head
"""
POSTGRESQL_START = """
    INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at)
    VALUES ('', %(conversation_id)s, clock_timestamp(), clock_timestamp())
"""
# The number stands in the text: where it is a parameter, PostgreSQL plans the statement anew at each execution.
POSTGRESQL_READ = f"""
    SELECT message_id, role, content, body, created_at FROM chat_message
    WHERE conversation_key = (SELECT conversation_key FROM chat_conversation
                              WHERE owner = %(owner)s AND conversation_id = %(conversation_id)s)
    ORDER BY position DESC LIMIT {WINDOW}
"""
SQLITE_ADVANCE = """
    UPDATE chat_conversation
    SET version = version + 1, last_position = last_position + 2, message_count = message_count + 2, updated_at = :now
    WHERE owner = :owner AND conversation_id = :conversation_id
    RETURNING conversation_key, version, last_position
"""
SQLITE_START = """
    INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at)
    VALUES ('', :conversation_id, :now, :now)
"""
SQLITE_INSERT = """
    INSERT INTO chat_message (conversation_key, position, message_id, role, content, created_at)
    VALUES (:key, :position, :message_id, :role, :content, :now)
"""
SQLITE_READ = f"""
    SELECT message_id, role, content, body, created_at FROM chat_message
    WHERE conversation_key = (SELECT conversation_key FROM chat_conversation
                              WHERE owner = :owner AND conversation_id = :conversation_id)
    ORDER BY position DESC LIMIT {WINDOW}
"""


class HandwrittenPostgresql:
    """One connection in autocommit mode: an append is one statement and one round trip."""

    driver = "psycopg"

    def __init__(self, url: str, schema: str) -> None:
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True, options=f"-c search_path={schema} -c timezone=UTC")

    def start(self, conversation_id: str) -> None:
        self.connection.execute(POSTGRESQL_START, {"conversation_id": conversation_id})

    def append(self, conversation_id: str, messages: Sequence[tuple[str, str]]) -> Any:
        return self.connection.execute(POSTGRESQL_APPEND, postgresql_parameters(conversation_id, messages)).fetchone()

    def newest(self, conversation_id: str) -> list[dict[str, Any]]:
        parameters = {"owner": "", "conversation_id": conversation_id}
        return as_dicts(self.connection.execute(POSTGRESQL_READ, parameters).fetchall())

    def close(self) -> None:
        self.connection.close()


class HandwrittenSqlite:
    """One connection of the standard library's sqlite3: WAL, an immediate transaction for each append."""

    driver = "sqlite3"

    def __init__(self, path: str, synchronous: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL").fetchone()
        self.connection.execute(f"PRAGMA synchronous = {synchronous}")

    def start(self, conversation_id: str) -> None:
        self.connection.execute(SQLITE_START, {"conversation_id": conversation_id, "now": now_text()})

    def append(self, conversation_id: str, messages: Sequence[tuple[str, str]]) -> int:
        now = now_text()
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            head = {"owner": "", "conversation_id": conversation_id, "now": now}
            key, version, last = self.connection.execute(SQLITE_ADVANCE, head).fetchone()
            self.connection.executemany(SQLITE_INSERT, sqlite_rows(key, last, messages, now))
            self.connection.execute("COMMIT")
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        return int(version)

    def newest(self, conversation_id: str) -> list[dict[str, Any]]:
        parameters = {"owner": "", "conversation_id": conversation_id}
        return as_dicts(self.connection.execute(SQLITE_READ, parameters).fetchall())

    def close(self) -> None:
        self.connection.close()


def postgresql_parameters(conversation_id: str, messages: Sequence[tuple[str, str]]) -> dict[str, Any]:
    (role_1, content_1), (role_2, content_2) = messages
    return {
        "owner": "",
        "conversation_id": conversation_id,
        "now": dt.datetime.now(dt.UTC),
        "id_1": str(uuid.uuid4()),
        "role_1": role_1,
        "content_1": content_1,
        "id_2": str(uuid.uuid4()),
        "role_2": role_2,
        "content_2": content_2,
    }


def sqlite_rows(key: int, last: int, messages: Sequence[tuple[str, str]], now: str) -> list[dict[str, Any]]:
    first = last - len(messages) + 1
    return [
        {
            "key": key,
            "position": position,
            "message_id": str(uuid.uuid4()),
            "role": role,
            "content": content,
            "now": now,
        }
        for position, (role, content) in enumerate(messages, first)
    ]


def now_text() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="microseconds")[:26] + "Z"


def as_dicts(rows: list[Any]) -> list[dict[str, Any]]:
    """Oldest first, JSON bodies parsed; SQLite's times stay the text they are."""
    return [
        {
            "id": message_id,
            "role": role,
            "content": content,
            "body": None if body is None else json.loads(body),
            "created_at": created_at,
        }
        for message_id, role, content, body, created_at in reversed(rows)
    ]
