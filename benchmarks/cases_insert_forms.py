"""How the rows of an insert travel to PostgreSQL (docs/decisions/0005): one JSON parameter, VALUES, or arrays.

Commits are relaxed, so that the disk does not hide the difference.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from benchmarks.measure import Row, Scale, compare, timed
from benchmarks.messages import ANSWER
from benchmarks.places import Place, PostgresqlPlace

COLUMNS = ("n", "message_id", "role", "content", "body", "token_count", "created_at")
TYPES = ("bigint", "text", "text", "text", "text", "integer", "timestamptz")
INSERT_ROWS = """
    WITH head AS (
        UPDATE chat_conversation
        SET version = version + 1, last_position = last_position + %(count)s ::bigint,
            message_count = message_count + %(count)s ::bigint, updated_at = clock_timestamp()
        WHERE owner = '' AND conversation_id = %(conversation_id)s
        RETURNING conversation_key, version, last_position - %(count)s ::bigint AS base
    ), stored AS (
        INSERT INTO chat_message
            (conversation_key, position, message_id, role, content, body, token_count, created_at)
        SELECT head.conversation_key, head.base + m.n, m.message_id, m.role, m.content, m.body, m.token_count,
               m.created_at
        FROM head CROSS JOIN {rows}
    )
    SELECT conversation_key, version FROM head
"""
FROM_JSON = INSERT_ROWS.format(
    rows=f"json_to_recordset(%(rows)s ::json) AS m({', '.join(map(' '.join, zip(COLUMNS, TYPES, strict=True)))})"
)
FROM_ARRAYS = INSERT_ROWS.format(
    rows="unnest({}) AS m({})".format(
        ", ".join(f"%({name})s ::{kind}[]" for name, kind in zip(COLUMNS, TYPES, strict=True)), ", ".join(COLUMNS)
    )
)


def insert_forms(place: Place, scale: Scale) -> Iterator[Row]:
    if not isinstance(place, PostgresqlPlace):
        return
    with contextlib.closing(place.handwritten(place.url)) as session:
        session.connection.execute("SET synchronous_commit = off")
        forms = {"JSON parameter": _json, "VALUES": _values, "unnest": _arrays}
        for name in forms:
            session.start(f"form {name}")
        for size in (2, 500):
            timers = {
                name: timed(lambda form=form, name=name, size=size: form(session.connection, f"form {name}", size))
                for name, form in forms.items()
            }
            json_side = ("JSON parameter", timers["JSON parameter"])
            for name in ("VALUES", "unnest"):
                yield compare(f"insert {size} rows by {name}", json_side, (name, timers[name]), scale.seconds)


def _rows(size: int) -> list[tuple[Any, ...]]:
    now = dt.datetime.now(dt.UTC)
    return [(number, str(uuid.uuid4()), "assistant", ANSWER, None, None, now) for number in range(1, size + 1)]


def _json(connection: Any, conversation_id: str, size: int) -> None:
    rows = msgspec.json.encode([dict(zip(COLUMNS, row, strict=True)) for row in _rows(size)]).decode()
    connection.execute(FROM_JSON, {"count": size, "conversation_id": conversation_id, "rows": rows}).fetchone()


def _arrays(connection: Any, conversation_id: str, size: int) -> None:
    arrays = dict(zip(COLUMNS, map(list, zip(*_rows(size), strict=True)), strict=True))
    connection.execute(FROM_ARRAYS, {"count": size, "conversation_id": conversation_id, **arrays}).fetchone()


def _values(connection: Any, conversation_id: str, size: int) -> None:
    cells = {f"{name}_{row[0]}": value for row in _rows(size) for name, value in zip(COLUMNS, row, strict=True)}
    parameters = {"count": size, "conversation_id": conversation_id, **cells}
    connection.execute(_values_statement(size), parameters).fetchone()


@functools.cache
def _values_statement(size: int) -> str:
    """One statement for each number of rows: PostgreSQL plans and keeps them all."""
    rows = [
        "(" + ", ".join(f"%({name}_{n})s ::{kind}" for name, kind in zip(COLUMNS, TYPES, strict=True)) + ")"
        for n in range(1, size + 1)
    ]
    return INSERT_ROWS.format(rows=f"(VALUES {', '.join(rows)}) AS m({', '.join(COLUMNS)})")
