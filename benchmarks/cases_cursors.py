"""A raw cursor of SQLAlchemy's pool beside SQLAlchemy Core for the same statement (docs/decisions/0003-raw-cursors.md).

Core gets its statements ready-made, so its rows say what it costs at least. Commits are relaxed on both sides, so that
the disk does not hide the difference.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Column, DateTime, Engine, Integer, MetaData, Table, Text, bindparam, literal_column, select, text

from benchmarks import handwritten as hand
from benchmarks.cases_operations import WINDOW_ID
from benchmarks.measure import Row, Scale, compare, timed
from benchmarks.messages import TURN, WINDOW
from benchmarks.places import MysqlPlace, Place, PostgresqlPlace

READ = {"owner": "", "conversation_id": WINDOW_ID}


def raw_cursors(place: Place, scale: Scale) -> Iterator[Row]:
    if isinstance(place, MysqlPlace):
        return  # PyMySQL, which is Python, costs more than either
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
    key = select(c.conversation_key)
    key = key.where(c.owner == bindparam("owner"), c.conversation_id == bindparam("conversation_id")).scalar_subquery()
    columns = select(m.message_id, m.role, m.content, m.body, m.created_at)
    newest = columns.where(m.conversation_key == key).order_by(m.position.desc())
    return newest.limit(literal_column(str(WINDOW)))
