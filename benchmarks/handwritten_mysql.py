"""The reference on MySQL and MariaDB: what one would write by hand with PyMySQL over the same tables.

Values are bound as PyMySQL binds them, the transaction is PyMySQL's own (no autocommit), and rows go in one INSERT.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import URL

from benchmarks.handwritten import as_dicts
from benchmarks.messages import WINDOW

START = """
    INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at)
    VALUES ('', %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
"""
LOCK = """
    SELECT conversation_key, version, last_position FROM chat_conversation
    WHERE owner = '' AND conversation_id = %s FOR UPDATE
"""
INSERT = """
    INSERT INTO chat_message (conversation_key, position, message_id, role, content, created_at)
    VALUES (%s, %s, %s, %s, %s, %s)
"""
ADVANCE = """
    UPDATE chat_conversation
    SET version = version + 1, last_position = last_position + %s, message_count = message_count + %s,
        updated_at = UTC_TIMESTAMP(6)
    WHERE conversation_key = %s
"""
READ = f"""
    SELECT message_id, role, content, body, created_at FROM chat_message
    WHERE conversation_key = (SELECT conversation_key FROM chat_conversation WHERE owner = '' AND conversation_id = %s)
    ORDER BY position DESC LIMIT {WINDOW}
"""


class HandwrittenMysql:
    """One connection; an append is four round trips: lock, rows, counters, commit."""

    driver = "PyMySQL"

    def __init__(self, url: URL) -> None:
        import pymysql

        self.connection = pymysql.connect(
            host=url.host or "localhost",
            port=url.port or 3306,
            user=url.username,
            password=url.password or "",
            database=url.database,
            charset="utf8mb4",
        )

    def run(self, statement: str, *values: Any) -> list[Any]:
        """A statement that is committed at once."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            rows = list(cursor.fetchall())
        self.connection.commit()
        return rows

    def start(self, conversation_id: str) -> None:
        self.run(START, conversation_id)

    def append(self, conversation_id: str, messages: Sequence[tuple[str, str]]) -> int:
        now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(LOCK, (conversation_id,))
                key, version, last = cursor.fetchone() or (0, 0, 0)
                cursor.executemany(
                    INSERT,
                    [
                        (key, position, str(uuid.uuid4()), role, content, now)
                        for position, (role, content) in enumerate(messages, last + 1)
                    ],
                )
                cursor.execute(ADVANCE, (len(messages), len(messages), key))
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise
        return int(version) + 1

    def newest(self, conversation_id: str) -> list[dict[str, Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(READ, (conversation_id,))
            found = as_dicts(list(cursor.fetchall()))
        self.connection.commit()
        return found

    def close(self) -> None:
        self.connection.close()
