"""Connections of one SQL database: a pool for each process and event loop, sessions over raw driver cursors.

The pool and the adaptation of asynchronous drivers are SQLAlchemy's; the statements go straight to the driver's
cursor, since the expression layer would cost more than the statements do (docs/decisions/0003-raw-cursors.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.dialect import Dialect
from chatkeep.errors import ChatkeepError, RepositoryClosedError, StorageTimeoutError
from chatkeep.urls import shown

statement_log = logging.getLogger("chatkeep.statements")
"""One DEBUG record for each statement that is sent: its text, never its values."""

_inherited: list[Any] = []
"""Pools of a parent process. A child must neither use nor close them, so they are kept from the garbage collector."""


class Session:
    """One connection for the time of one operation. Not for two threads at once."""

    __slots__ = ("_cursor", "_in_transaction", "at_risk", "dialect")

    def __init__(self, dialect: Dialect, cursor: Any) -> None:
        self.dialect = dialect
        self.at_risk = False
        """Whether a statement under way may commit, so that a lost reply leaves the outcome unknown."""
        self._cursor = cursor
        self._in_transaction = False

    def rows(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        """All rows of a read."""
        self._execute(statement, parameters)
        found: list[Any] = self._cursor.fetchall()
        return found

    def row(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """The first row, or None."""
        self._execute(statement, parameters)
        return self._cursor.fetchone()

    def run(self, statement: str, parameters: Mapping[str, Any] | None = None) -> int:
        """The number of rows a write touched. Outside of a transaction it commits itself."""
        self.at_risk = not self._in_transaction
        self._execute(statement, parameters)
        self.at_risk = False
        count: int = self._cursor.rowcount
        return count

    def row_of_write(self, statement: str, parameters: Mapping[str, Any]) -> Any:
        """The first row that a write returns."""
        self.at_risk = not self._in_transaction
        self._execute(statement, parameters)
        self.at_risk = False
        return self._cursor.fetchone()

    def run_many(self, statement: str, parameters: Sequence[Mapping[str, Any]]) -> None:
        """One write for each of the parameter sets."""
        statement_log.debug("%s", statement)
        self._cursor.executemany(statement, parameters)

    def in_chunks(self, name: str, ids: Sequence[str], parameters: Mapping[str, Any], size: int = 200) -> Iterator[str]:
        """Execute `name`, which has `IN ({ids})`, for a bounded number of ids a time; yields after each."""
        for start in range(0, len(ids), size):
            chunk = {f"id{index}": value for index, value in enumerate(ids[start : start + size])}
            statement = self.dialect.sql(name, ids=", ".join(f":{key}" for key in chunk))
            self._execute(statement, {**parameters, **chunk})
            yield statement

    def fetch(self) -> list[Any]:
        """The rows of the statement that `in_chunks` has just executed."""
        found: list[Any] = self._cursor.fetchall()
        return found

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements inside are applied together, or none."""
        # Before BEGIN: an interrupt may arrive after it took effect and before it returns.
        self._in_transaction = True
        self._execute(self.dialect.sql("BEGIN"))
        yield
        self.at_risk = True
        self._execute(self.dialect.sql("COMMIT"))
        self.at_risk = False
        self._in_transaction = False

    def roll_back(self) -> None:
        """Undo the transaction that this session began."""
        if self._in_transaction:
            self._in_transaction = False
            self._execute(self.dialect.sql("ROLLBACK"))

    def _execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> None:
        if statement_log.isEnabledFor(logging.DEBUG):
            statement_log.debug("%s", statement)
        if parameters is None:
            self._cursor.execute(statement)
        else:
            self._cursor.execute(statement, parameters)


class Database:
    """Sessions on one database, from any thread, also after a fork and on a new event loop."""

    def __init__(self, dialect: Dialect, request: OpenRequest) -> None:
        self.dialect = dialect
        self.request = request
        self.place = shown(request.url)
        self._per_loop = request.asynchronous and dialect.async_bridge == "greenlet"
        self._lock = threading.Lock()
        self._pools: dict[int, _Pool] = {}
        self._process = os.getpid()
        self._closed = False
        self._finalizer = weakref.finalize(self, _abandon_all, self._pools, self._process)

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """A connection from the pool. Driver errors leave as StorageError; an open transaction is rolled back."""
        connection = self._check_out()
        session = None
        try:
            cursor = connection.cursor()
            session = Session(self.dialect, cursor)
            yield session
        except BaseException as error:
            at_risk = session is not None and session.at_risk
            self._put_back(connection, session, error)
            if isinstance(error, ChatkeepError) or not isinstance(error, Exception) or not self._is_driver_error(error):
                raise
            raise self.dialect.translate(error, place=self.place, at_risk=at_risk) from error
        if not self.dialect.is_idle(connection.driver_connection):
            connection.invalidate()  # never seen; a transaction left open must not meet the next caller
            return
        cursor.close()
        connection.close()

    def close(self) -> None:
        """Close the connections of this process; those of other event loops without their loop."""
        with self._lock:
            self._closed = True
            pools, self._pools = list(self._pools.items()), {}
        self._finalizer.detach()
        here = self._key()
        for key, pool in pools:
            if key == here and pool.is_current():
                pool.engine.dispose()
            else:
                pool.abandon()

    def _check_out(self) -> Any:
        engine = self._engine()
        while True:
            try:
                connection = engine.raw_connection()
            except PoolTimeoutError as error:
                raise StorageTimeoutError(
                    f"{self.dialect.name}: all connections of the pool were busy until its time-out; "
                    f"raise pool_size, or look for calls that hold on",
                    backend=self.dialect.name,
                ) from error
            except Exception as error:
                if not self._is_driver_error(error):
                    raise
                raise self.dialect.translate(error, place=self.place, at_risk=False) from error
            if self.dialect.is_alive(connection.driver_connection):
                return connection
            # Killed on the server or by an idle time-out while it lay in the pool: nothing was sent on it.
            connection.invalidate()

    def _put_back(self, connection: Any, session: Session | None, error: BaseException) -> None:
        """After an error: back to the pool only what is known to be idle. Asks the driver, not our own flags."""
        try:
            if isinstance(error, Exception) and self._is_driver_error(error) and self.dialect.is_disconnect(error):
                connection.invalidate()
                return
            idle = self.dialect.is_idle(connection.driver_connection)
            if not idle and session is not None:
                session.roll_back()
                idle = self.dialect.is_idle(connection.driver_connection)
            if idle:
                connection.close()
            else:
                connection.invalidate()
        except BaseException:
            # What can't be rolled back must not be used again; the first error is the one to report.
            connection.invalidate()

    def _is_driver_error(self, error: BaseException) -> bool:
        from sqlalchemy.exc import DBAPIError

        return isinstance(error, (self.dialect.driver_errors(), DBAPIError))

    def _engine(self) -> Engine:
        if self._closed:
            raise RepositoryClosedError(f"this {self.dialect.name} repository is closed; open a new one")
        pool = self._pools.get(self._key())
        if pool is not None and self._process == os.getpid() and pool.is_current():
            return pool.engine
        with self._lock:
            return self._new_engine()

    def _new_engine(self) -> Engine:
        if self._process != os.getpid():
            _inherited.append(dict(self._pools))
            self._pools.clear()
            self._finalizer.detach()
            self._process = os.getpid()
            self._finalizer = weakref.finalize(self, _abandon_all, self._pools, self._process)
        for key, pool in list(self._pools.items()):
            if pool.is_stale():
                del self._pools[key]
                pool.abandon()
        key = self._key()
        if key not in self._pools:
            self._pools[key] = _Pool(self.dialect, self.request, asyncio.get_running_loop() if key else None)
        return self._pools[key].engine

    def _key(self) -> int:
        if not self._per_loop:
            return 0
        try:
            return id(asyncio.get_running_loop())
        except RuntimeError:
            return 0


class _Pool:
    """An engine and the connections it made, for one event loop or for none."""

    def __init__(self, dialect: Dialect, request: OpenRequest, loop: asyncio.AbstractEventLoop | None) -> None:
        self.engine = dialect.create_engine(request)
        self._dialect = dialect
        self._loop = None if loop is None else weakref.ref(loop)
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()
        event.listen(self.engine, "connect", self._connected)

    def _connected(self, connection: Any, record: Any) -> None:
        self._connections.add(record.driver_connection)

    def is_current(self) -> bool:
        """Whether it belongs to the running loop; ids of loops are used again."""
        return self._loop is None or self._loop() is asyncio.get_running_loop()

    def is_stale(self) -> bool:
        """Whether its loop is gone, so that nobody can await its connections any more."""
        if self._loop is None:
            return False
        loop = self._loop()
        return loop is None or loop.is_closed()

    def abandon(self) -> None:
        """Close the connections without awaiting anything."""
        for connection in list(self._connections):
            with contextlib.suppress(Exception):
                self._dialect.abandon(connection)


def _abandon_all(pools: dict[int, _Pool], process: int) -> None:
    if os.getpid() == process:
        for pool in pools.values():
            pool.abandon()
