"""Connections of one SQL database: a pool for each process and event loop, and sessions on them.

The pool and the adaptation of asynchronous drivers are SQLAlchemy's; the statements go straight to the driver's
cursor, since the expression layer would cost more than the statements do (docs/decisions/0003-raw-cursors.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import weakref
from collections.abc import Iterator
from typing import Any

import greenlet
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.dialect import Dialect
from chatkeep.backends.relational.session import Session
from chatkeep.errors import ChatkeepError, RepositoryClosedError, StorageConnectionError, StorageTimeoutError
from chatkeep.forking import Lock
from chatkeep.urls import shown

POOL_TIMEOUT = 30.0
"""How long a call waits for a connection, unless the option `pool_timeout` says otherwise."""

_inherited: list[Any] = []
"""Pools of a parent process. A child must neither use nor close them, so they are kept from the garbage collector."""


class Database:
    """Sessions on one database, from any thread, also after a fork and on a new event loop."""

    def __init__(self, dialect: Dialect, request: OpenRequest) -> None:
        self.dialect = dialect
        self.request = request
        self.place = shown(request.url)
        self._per_loop = request.asynchronous and dialect.async_bridge == "greenlet"
        self._lock = Lock()
        self._pools: dict[int, _Pool] = {}
        self._process = os.getpid()
        self._closed = False
        self._gate = dialect.gate(request)
        if self._gate is not None:
            self._gate.add(self, Database._close_idle)
        self._finalizer = weakref.finalize(self, _abandon_all, self._pools, self._process)

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """A connection from the pool. Driver errors leave as StorageError; an open transaction is rolled back."""
        session = Session(self.dialect, self._gate)
        connection = None
        if self._gate is not None:
            self._gate.enter(session)
        try:
            connection = self._check_out(session)
            session.open(self.dialect.cursor(connection))
            yield session
        except BaseException as error:
            at_risk = session.at_risk
            if connection is not None:
                self._put_back(connection, session, error)
            if isinstance(error, ChatkeepError) or not isinstance(error, Exception) or not self._is_driver_error(error):
                raise
            raise self.dialect.translate(error, place=self.place, at_risk=at_risk) from error
        else:
            session.close()
            # Not idle was never seen; a transaction left open must not meet the next caller. After close(), the pool
            # that the connection came from is gone.
            if self._closed or not self.dialect.is_idle(connection.driver_connection):
                connection.invalidate()
            else:
                connection.close()
        finally:
            if self._gate is not None:
                self._gate.leave(session)

    def close(self) -> None:
        """Close the connections of this process; those of other event loops without their loop."""
        with self._lock.now:
            self._closed = True
            pools, self._pools = dict(self._pools), {}
        self._finalizer.detach()
        if self._process != os.getpid():
            _inherited.append(pools)
            return
        here = self._key()
        for key, pool in pools.items():
            if key == here and pool.is_current():
                pool.engine.dispose()
            else:
                pool.abandon()

    def _close_idle(self) -> None:
        for pool in list(self._pools.values()):
            pool.engine.dispose()

    def _check_out(self, session: Session) -> Any:
        pool = self._pool()
        pool.leases.add(session)
        deadline = time.monotonic() + self.request.options.get("pool_timeout", POOL_TIMEOUT)
        dead = 0
        while dead < pool.size + 2:
            try:
                connection = pool.connection_for(session)
            except PoolTimeoutError as error:
                if pool.mend() or time.monotonic() < deadline:
                    continue
                raise StorageTimeoutError(
                    f"{self.dialect.name} at {self.place}: all connections of the pool were busy until its time-out; "
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
            dead += 1
        raise StorageConnectionError(
            f"{self.dialect.name} at {self.place}: every new connection was closed at once by the server",
            backend=self.dialect.name,
        )

    def _put_back(self, connection: Any, session: Session, error: BaseException) -> None:
        """After an error: back to the pool only what is known to be idle. Asks the driver, not our own flags."""
        try:
            if isinstance(error, Exception) and self._is_driver_error(error) and self.dialect.is_disconnect(error):
                connection.invalidate()
                return
            idle = self.dialect.is_idle(connection.driver_connection)
            if not idle and session.is_open:
                session.roll_back()
                idle = self.dialect.is_idle(connection.driver_connection)
            if idle and not self._closed:
                connection.close()
            else:
                connection.invalidate()
        except BaseException:
            # What can't be rolled back must not be used again; the first error is the one to report.
            connection.invalidate()
        finally:
            with contextlib.suppress(Exception):
                session.close()

    def _is_driver_error(self, error: Exception) -> bool:
        return isinstance(error, (self.dialect.driver_errors(), DBAPIError))

    def _pool(self) -> _Pool:
        if self._closed:
            raise RepositoryClosedError(f"this {self.dialect.name} repository is closed; open a new one")
        pool = self._pools.get(self._key())
        if pool is not None and self._process == os.getpid() and pool.is_current():
            return pool
        with self._lock.now:
            return self._new_pool()

    def _new_pool(self) -> _Pool:
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
        return self._pools[key]

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
        self.leases: weakref.WeakSet[Session] = weakref.WeakSet()
        """Sessions that hold a connection or wait for one."""
        self._dialect = dialect
        self._loop = None if loop is None else weakref.ref(loop)
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()
        self._asking: dict[Any, Session] = {}
        """By thread and greenlet, the session that asks the pool for a connection there."""
        pool = self.engine.pool
        pool._creator = self._noted(pool._creator)
        self._traffic = 0
        """Counts connections that are given out: none is taken back while some wait that isn't given out at once."""
        self._seen: tuple[int, float] | None = None
        """The traffic when a place was missed, and since when."""
        event.listen(self.engine, "connect", self._connected)

    def connection_for(self, session: Session) -> Any:
        """A connection of the pool, an idle one or a new one."""
        here = greenlet.getcurrent()
        self._asking[here] = session
        try:
            connection = self.engine.raw_connection()
            self._traffic += 1
            return connection
        except BaseException:
            session.connecting = False
            raise
        finally:
            del self._asking[here]

    def _noted(self, connect: Any) -> Any:
        def connect_and_say_so(*arguments: Any, **options: Any) -> Any:
            session = self._asking.get(greenlet.getcurrent())
            if session is not None:
                session.connecting = True
            return connect(*arguments, **options)

        return connect_and_say_so

    def _connected(self, connection: Any, record: Any) -> None:
        self._connections.add(record.driver_connection)
        try:
            self._dialect.prepare(connection, record.driver_connection)
        except BaseException:
            # The pool forgets a connection that was not made ready, without closing it.
            self._dialect.abandon(record.driver_connection)
            raise

    @property
    def size(self) -> int:
        """Connections at most."""
        size: int = self.engine.pool.size()  # type: ignore[attr-defined]
        return size

    def mend(self) -> bool:
        """Replace the pool where it counts connections that nobody holds; whether it did.

        An exception out of a signal handler may arrive inside the pool, between taking a place and noting who has it.
        """
        held = sum(session.has_place for session in list(self.leases))
        seen, self._seen = self._seen, None
        if held >= self.size:
            return False
        # A session has no place for a moment as it gets and gives back its connection. Lost is what nobody holds while
        # nothing moves.
        now = time.monotonic()
        if seen is None or seen[0] != self._traffic:
            self._seen = (self._traffic, now)
            return False
        if now - seen[1] < self._dialect.pool_slice:
            self._seen = seen
            return False
        old = self.engine.pool
        self.engine.pool = old.recreate()
        # What is in use goes back to the old one, which nobody takes from any more.
        event.listen(old, "checkin", _close)
        old.dispose()
        return True

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


def _close(connection: Any, record: Any) -> None:
    if connection is not None:
        record.invalidate()


def _abandon_all(pools: dict[int, _Pool], process: int) -> None:
    if os.getpid() == process:
        for pool in pools.values():
            pool.abandon()
