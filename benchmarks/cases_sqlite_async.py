"""SQLite under asyncio (docs/decisions/0004-sqlite-async.md): one thread hop for an operation, or one for a statement.

aiosqlite is the hop for each statement, by hand and as SQLAlchemy drives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
from collections.abc import Iterator
from typing import Any

from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import greenlet_spawn

from benchmarks import handwritten as hand
from benchmarks.measure import Row, Scale, compare, timed_async
from benchmarks.messages import TURN, WINDOW, seed, turn
from benchmarks.places import Place, SqlitePlace, database_file
from chatkeep import open_async_repository, open_repository

ID = "asked"


def hops(place: Place, scale: Scale) -> Iterator[Row]:
    if not isinstance(place, SqlitePlace) or importlib.util.find_spec("aiosqlite") is None:
        return
    urls = [place.new_url() for _ in range(4)]
    for url in urls:
        with open_repository(url) as repository:
            seed(repository, ID, WINDOW * 5)
    with asyncio.Runner() as runner, contextlib.closing(place.handwritten(urls[1])) as session:
        ours = runner.run(open_async_repository(urls[0]))
        by_statement = AiosqliteHand()
        runner.run(by_statement.open(database_file(urls[2])))
        engine = create_async_engine(f"sqlite+aiosqlite:///{database_file(urls[3])}", isolation_level="AUTOCOMMIT")
        runner.run(greenlet_spawn(_set_normal, engine.sync_engine))

        def row(work: str, reference: str, one: Any, measured: str, other: Any) -> Row:
            return compare(
                work,
                (reference, timed_async(one, runner)),
                (measured, timed_async(other, runner)),
                scale.seconds,
            )

        async def one_hop() -> None:
            await asyncio.to_thread(session.append, ID, TURN)

        yield row(
            "append by hand, a hop for each statement",
            "one hop",
            one_hop,
            "aiosqlite",
            by_statement.append,
        )
        yield row(
            "the same through SQLAlchemy's aiosqlite",
            "one hop",
            one_hop,
            "SQLAlchemy + aiosqlite",
            lambda: greenlet_spawn(_append, engine.sync_engine),
        )
        yield row(
            "append by chatkeep, one hop",
            "aiosqlite by hand",
            by_statement.append,
            "chatkeep",
            lambda: ours.append(ID, turn()),
        )
        yield row(
            f"read the newest {WINDOW} by chatkeep, one hop",
            "aiosqlite by hand",
            by_statement.newest,
            "chatkeep",
            lambda: ours.find_by_conversation_id(ID, limit=WINDOW),
        )
        runner.run(ours.close())
        runner.run(by_statement.connection.close())
        runner.run(engine.dispose())


class AiosqliteHand:
    """The hand-written SQLite side with aiosqlite, in as few hops as it allows: four for an append, one for a read."""

    connection: Any

    async def open(self, path: str) -> None:
        import aiosqlite

        self.connection = await aiosqlite.connect(path, isolation_level=None)
        await self.connection.execute("PRAGMA synchronous = normal")

    async def append(self) -> None:
        now = hand.now_text()
        await self.connection.execute("BEGIN IMMEDIATE")
        head = {"owner": "", "conversation_id": ID, "now": now}
        ((key, _, last),) = await self.connection.execute_fetchall(hand.SQLITE_ADVANCE, head)
        await self.connection.executemany(hand.SQLITE_INSERT, hand.sqlite_rows(key, last, TURN, now))
        await self.connection.commit()

    async def newest(self) -> list[dict[str, Any]]:
        parameters = {"owner": "", "conversation_id": ID}
        return hand.as_dicts(list(await self.connection.execute_fetchall(hand.SQLITE_READ, parameters)))


def _set_normal(engine: Any) -> None:
    connection = engine.raw_connection()
    connection.cursor().execute("PRAGMA synchronous = normal")
    connection.close()


def _append(engine: Any) -> None:
    """What chatkeep would do over SQLAlchemy's adaptation of aiosqlite, in a greenlet."""
    now = hand.now_text()
    connection = engine.raw_connection()
    cursor = connection.cursor()
    cursor.execute("BEGIN IMMEDIATE")
    cursor.execute(hand.SQLITE_ADVANCE, {"owner": "", "conversation_id": ID, "now": now})
    key, _, last = cursor.fetchone()
    cursor.executemany(hand.SQLITE_INSERT, hand.sqlite_rows(key, last, TURN, now))
    cursor.execute("COMMIT")
    cursor.close()
    connection.close()
