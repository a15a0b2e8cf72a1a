"""SQLite: sqlite3 of the standard library, WAL, immediate transactions. The async form runs in worker threads.

A worker thread takes a whole operation; an asynchronous driver would hop to a thread for each statement
(docs/decisions/0004-sqlite-async.md has the figures).
"""

from __future__ import annotations

import datetime as dt
import functools
import os
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from chatkeep import config
from chatkeep.backends.plugin import BackendPlugin, OpenRequest, Option
from chatkeep.backends.relational.backend import RelationalBackend
from chatkeep.backends.relational.dialect import CAPABILITIES, Dialect
from chatkeep.backends.relational.sqlite_files import FileGate, gate_of
from chatkeep.errors import ConfigurationError
from chatkeep.times import format_time

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from chatkeep.backends.relational.session import Session
    from chatkeep.migrations.target import Target
    from chatkeep.storage.backend import Backend

MEMORY = ("", ":memory:")
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
BUSY_TIMEOUT = 5.0
"""Seconds that SQLite itself waits for another writer before the call is retried with a fresh try."""


class SqliteDialect(Dialect):
    """RETURNING is not used, so any SQLite of the last years works; 3.35 is required all the same and tested from."""

    name = "sqlite"
    capabilities = msgspec.structs.replace(CAPABILITIES, vectors=True)
    paramstyle = "named"
    now = moment = ":now"
    binds_now = True
    turn_seconds = BUSY_TIMEOUT
    async_bridge = "thread"

    # One writer at a time holds the whole database from here on: no row locks needed, no deadlock possible.
    BEGIN = "BEGIN IMMEDIATE"
    lock = ""

    def create_engine(self, request: OpenRequest) -> Engine:
        from sqlalchemy import create_engine, event, pool

        options = request.options
        database = request.url.database or ""
        in_memory = database in MEMORY
        connect = functools.partial(
            _connect,
            "file::memory:" if in_memory else _file_uri(database),
            options.get("busy_timeout", BUSY_TIMEOUT),
            options.get("synchronous", "full"),
            wal=not in_memory,
        )
        kept = _Kept(connect) if in_memory else None
        engine = create_engine(
            "sqlite://",
            creator=kept or connect,
            poolclass=pool.QueuePool,
            pool_size=1 if in_memory else options.get("pool_size", 8),
            max_overflow=0,
            pool_timeout=self.pool_slice,
            pool_reset_on_return=None,
            _initialize=False,
        )
        if kept is not None:
            event.listen(engine, "engine_disposed", lambda engine: kept.close())
        return engine

    def gate(self, request: OpenRequest) -> FileGate | None:
        database = request.url.database or ""
        return None if database in MEMORY else gate_of(_path(database))

    def driver_errors(self) -> type[Exception]:
        return sqlite3.Error

    def is_idle(self, connection: Any) -> bool:
        return not connection.in_transaction

    def abandon(self, connection: Any) -> None:
        connection.close()

    def next_step(self, error: Exception) -> str:
        family = _code(error) & 0xFF
        if family == sqlite3.SQLITE_CANTOPEN:
            return "does the directory exist, and may this account write there?"
        if family == sqlite3.SQLITE_READONLY:
            return "the file or its directory is read-only for this account; WAL needs to write beside the file"
        if family == sqlite3.SQLITE_NOTADB:
            return "the file is no SQLite database; is the path right?"
        if family == sqlite3.SQLITE_CORRUPT:
            return "the file is damaged; restore a backup, or try the sqlite3 tool's .recover"
        return ""

    def describe(self, session: Session) -> dict[str, str]:
        version, journal, synchronous = (
            session.row(statement)[0]
            for statement in ("SELECT sqlite_version()", "PRAGMA journal_mode", "PRAGMA synchronous")
        )
        level = {0: "off", 1: "normal", 2: "full", 3: "extra"}.get(synchronous, synchronous)
        return {
            "driver": "sqlite3 of Python's standard library",
            "server": f"SQLite {version} (journal_mode={journal}, synchronous={level})",
        }

    def to_time(self, moment: dt.datetime | None) -> Any:
        return None if moment is None else format_time(moment)

    def from_time(self, value: Any) -> Any:
        if type(value) is not str:
            return value
        try:
            return dt.datetime.fromisoformat(value)
        except ValueError:
            return value  # a foreign row; the codec names it

    def is_duplicate(self, error: Exception) -> bool:
        return _code(error) in (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)

    def is_contention(self, error: Exception) -> bool:
        # The low byte is the family: SQLITE_BUSY_SNAPSHOT, SQLITE_BUSY_RECOVERY, SQLITE_LOCKED_SHAREDCACHE, …
        return (_code(error) & 0xFF) in BUSY

    def is_refused(self, error: Exception) -> bool:
        family = _code(error) & 0xFF
        return family in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PERM)

    def is_capacity(self, error: Exception) -> bool:
        if _code(error) == sqlite3.SQLITE_CONSTRAINT_CHECK and "chat_conversation_numbers" in str(error):
            return True
        return (_code(error) & 0xFF) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_TOOBIG)

    def is_missing_schema(self, error: Exception) -> bool:
        return str(error).startswith(("no such table", "no such column"))


class _Connection(sqlite3.Connection):
    """Only to be weakly referenced, which the base class does not allow."""


class _MemoryConnection(_Connection):
    """The whole of a database in memory: the pool may throw it away after an error, but not close it."""

    def close(self) -> None:
        pass


class _Kept:
    """The creator of a pool whose one connection stays the same. Callers take turns with it."""

    def __init__(self, connect: Callable[..., sqlite3.Connection]) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = None

    def __call__(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect(factory=_MemoryConnection)
        elif self._connection.in_transaction:
            self._connection.rollback()
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            sqlite3.Connection.close(self._connection)


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) or 0


def _connect(
    uri: str, busy_timeout: float, synchronous: str, *, wal: bool, factory: type[sqlite3.Connection] = _Connection
) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,  # autocommit: transactions are begun by statements
        check_same_thread=False,  # the pool hands a connection to one thread at a time
        cached_statements=256,
        factory=factory,
    )
    try:
        if wal and connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            _to_wal(connection, busy_timeout)
        # FULL: a commit is on the disk before it is acknowledged. NORMAL may lose the last ones with the power.
        connection.execute(f"PRAGMA synchronous = {synchronous}")
    except BaseException:
        connection.close()
        raise
    return connection


def _to_wal(connection: sqlite3.Connection, seconds: float) -> None:
    """Once in the life of a file. SQLite answers "locked" at once where others do it too, and does not wait."""
    import tenacity

    for attempt in tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: _code(error) & 0xFF in BUSY),
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_random(0.005, 0.05),
        reraise=True,
    ):
        with attempt:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()


def _path(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 (keeps the text as is)


def _file_uri(path: str) -> str:
    # As a URI with every character quoted, so that no file name can carry options.
    return "file:" + quote(_path(path))


def _open(request: OpenRequest) -> RelationalBackend:
    if request.url.host or request.url.username:
        raise ConfigurationError(
            "sqlite: URLs name a file and no host: sqlite:///relative.db or sqlite:////absolute.db"
        )
    if request.url.database not in (None, *MEMORY) and str(request.url.database).startswith("file:"):
        raise ConfigurationError("sqlite: SQLite's own file: URIs are not taken; name the file and use options")
    return RelationalBackend(SqliteDialect(), request)


def _migrations(request: OpenRequest, backend: Backend | None) -> Target:
    from chatkeep.backends.relational.migration import relational_target

    return relational_target(SqliteDialect(), request, backend)


def _vector_migrations(request: OpenRequest, backend: Backend | None) -> Target:
    from chatkeep.backends.relational.migration import vector_target

    return vector_target(_migrations(request, backend))


BACKEND = BackendPlugin(
    name="sqlite",
    schemes=("sqlite",),
    open=_open,
    drivers=("pysqlite",),
    embedded=True,
    migrations=_migrations,
    vector_migrations=_vector_migrations,
    options=(
        Option("busy_timeout", config.parse_seconds, "how long SQLite waits for another writer (5 s)"),
        Option("synchronous", config.parse_choice("off", "normal", "full", "extra"), "durability of a commit (full)"),
        Option("pool_size", config.parse_count(1, 1000), "connections at most (8)"),
        Option("pool_timeout", config.parse_seconds, "how long a call waits for a connection (30 s)"),
    ),
)

__all__ = ["BACKEND", "CAPABILITIES", "SqliteDialect"]
