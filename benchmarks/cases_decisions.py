"""The figures that the decision records cite: 0003 raw cursors, 0004 SQLite async, 0005 rows as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import functools
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from sqlalchemy import Column, DateTime, Engine, Integer, MetaData, Table, Text, select, text

from benchmarks import handwritten as hand
from benchmarks.cases_operations import WINDOW, WINDOW_ID
from benchmarks.measure import Row, Scale, compare, timed
from benchmarks.messages import ANSWER, TURN
from benchmarks.places import Place, PostgresqlPlace

# --- 0003: a raw cursor of the pool beside SQLAlchemy Core --------------------------------------------------------------

READ = {"owner": "", "conversation_id": WINDOW_ID, "limit": WINDOW}


def raw_cursors(place: Place, scale: Scale) -> Iterator[Row]:
    postgresql = isinstance(place, PostgresqlPlace)
    read = hand.POSTGRESQL_READ if postgresql else hand.SQLITE_READ
    append = _append_postgresql if postgresql else _append_sqlite
    url = place.new_url()
    with contextlib.closing(place.handwritten(url)) as connection:
        connection.start("cursor")
        connection.start("core")
    engine, writer = place.engine(place.url), place.engine(url)
    expression = _read_expression(postgresql)
    read_text = text(_named(read))
    cursor = ("raw pool cursor", timed(lambda: _raw(engine, lambda run: run(read, READ).fetchall())))
    for name, statement in (("text()", read_text), ("select()", expression)):
        core = timed(lambda statement=statement: _core_read(engine, statement))
        yield compare(f"read the newest {WINDOW} through Core's {name}", cursor, ("Core", core), scale.seconds)
    yield compare(
        "append a turn through Core's text()",
        ("raw pool cursor", timed(lambda: _raw(writer, lambda run: append(run, "cursor", lambda sql: sql)))),
        ("Core", timed(lambda: _core_append(writer, append))),
        scale.seconds,
    )
    engine.dispose()
    writer.dispose()


def _raw(engine: Engine, work: Callable[[Any], Any]) -> Any:
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()

        def run(sql: str, parameters: Any = None) -> Any:
            if isinstance(parameters, list):
                return cursor.executemany(sql, parameters)
            cursor.execute(sql) if parameters is None else cursor.execute(sql, parameters)
            return cursor

        return work(run)
    finally:
        connection.close()


def _core_read(engine: Engine, statement: Any) -> Any:
    with engine.connect() as connection:
        return connection.execute(statement, READ).fetchall()


def _core_append(engine: Engine, append: Callable[..., Any]) -> Any:
    with engine.connect() as connection:
        return append(connection.execute, "core", _as_text)


def _append_postgresql(run: Any, conversation_id: str, statement: Any) -> Any:
    return run(statement(hand.POSTGRESQL_APPEND), hand.postgresql_parameters(conversation_id, TURN)).fetchone()


def _append_sqlite(run: Any, conversation_id: str, statement: Any) -> Any:
    now = hand.now_text()
    run(statement("BEGIN IMMEDIATE"))
    head = {"owner": "", "conversation_id": conversation_id, "now": now}
    key, version, last = run(statement(hand.SQLITE_ADVANCE), head).fetchone()
    run(statement(hand.SQLITE_INSERT), hand.sqlite_rows(key, last, TURN, now))
    run(statement("COMMIT"))
    return version


@functools.cache
def _as_text(sql: str) -> Any:
    return text(_named(sql))


def _named(sql: str) -> str:
    return re.sub(r"%\((\w+)\)s", r":\1", sql).replace("::", r"\:\:")


def _read_expression(postgresql: bool) -> Any:
    time = DateTime(timezone=True) if postgresql else Text()
    conversation = Table(
        "chat_conversation",
        MetaData(),
        Column("conversation_key", Integer),
        Column("owner", Text),
        Column("conversation_id", Text),
    )
    message = Table(
        "chat_message",
        MetaData(),
        Column("conversation_key", Integer),
        Column("position", Integer),
        *(Column(name, Text) for name in ("message_id", "role", "content", "body")),
        Column("created_at", time),
    )
    c, m = conversation.c, message.c
    key = select(c.conversation_key).where(c.owner == "", c.conversation_id == WINDOW_ID).scalar_subquery()
    columns = select(m.message_id, m.role, m.content, m.body, m.created_at)
    return columns.where(m.conversation_key == key).order_by(m.position.desc()).limit(WINDOW)


# --- 0005: how the rows of an insert travel to PostgreSQL -------------------------------------------------------------

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
                yield compare(
                    f"insert {size} rows by {name}", json_side, (name, timers[name]), scale.seconds
                )


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
