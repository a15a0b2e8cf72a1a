"""The cursor over both drivers of MySQL and MariaDB, and what can be asked of a connection without a round trip."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.mysql_errors import CR_SERVER_LOST
from chatkeep.backends.relational.pooling import is_silent
from chatkeep.errors import StorageCapacityError

STATEMENT_TIMEOUT = 30.0
IN_TRANSACTION = 0x0001
"""SERVER_STATUS_IN_TRANS of the protocol's status flags."""


def client_timeout(request: OpenRequest) -> float:
    """A little more than the server's own, which leaves the connection whole."""
    return float(request.options.get("statement_timeout", STATEMENT_TIMEOUT)) + 1.0


class MysqlCursor:
    """One cursor over both drivers: a whole message at a time, no larger than the server takes, never left half-way."""

    __slots__ = ("_connection", "_most_bytes", "_name", "_raw", "_seconds")

    def __init__(self, connection: Any, request: OpenRequest, most_bytes: int, name: str) -> None:
        self._connection = connection
        self._most_bytes = most_bytes
        self._name = name
        self._seconds = client_timeout(request)
        self._raw = _raw_cursor(connection)

    def execute(self, statements: str, values: Sequence[Any] | None = None) -> None:
        """Run one statement or several; rows and count are those of the last."""
        text = statements if values is None else self._raw.mogrify(statements, values)
        self._check_size(text)
        try:
            if is_async(self._connection):
                self._await(self._whole(text), to_the_end=text.endswith("COMMIT"))
            else:
                self._raw.execute(text)
                while self._raw.nextset():
                    pass
        except BaseException as error:
            if not isinstance(error, driver_errors()):
                # Broken off half-way: what the server sends next would be taken for the answer to something else.
                close_now(self._connection)
            raise

    @property
    def rowcount(self) -> int:
        count: int = self._raw.rowcount
        return count

    def fetchall(self) -> list[Any]:
        return list(self._taken(self._raw.fetchall()))

    def fetchone(self) -> Any:
        return self._taken(self._raw.fetchone())

    @contextlib.contextmanager
    def patient(self) -> Iterator[None]:
        """Within the context, no time-out of ours ends a statement; migrations run on PyMySQL."""
        before = self._connection._read_timeout
        self._connection._read_timeout = None
        try:
            yield
        finally:
            self._connection._read_timeout = before

    def close(self) -> None:
        """Nothing is left to read: results are taken whole."""

    async def _whole(self, text: str) -> None:
        await self._raw.execute(text)
        while await self._raw.nextset():
            pass

    def _taken(self, rows: Any) -> Any:
        """What the driver has read already; aiomysql gives it as a future that is done."""
        return rows.result() if asyncio.isfuture(rows) else rows

    def _await(self, call: Awaitable[Any], *, to_the_end: bool) -> Any:
        from pymysql.err import OperationalError
        from sqlalchemy.util import await_only

        try:
            return await_only(within(self._seconds, call, to_the_end=to_the_end))
        except TimeoutError as error:
            text = "Lost connection to MySQL server during query (timed out)"
            raise OperationalError(CR_SERVER_LOST, text) from error

    def _check_size(self, text: str) -> None:
        # The server would answer a larger one by closing the connection while it is still being sent.
        if len(text) * 4 < self._most_bytes:
            return
        size = len(text.encode("utf-8", "surrogateescape"))
        if size >= self._most_bytes:
            raise StorageCapacityError(
                f"{self._name}: a statement of {size} bytes is more than the {self._most_bytes} this server takes; "
                f"raise its max_allowed_packet (64M holds the largest message chatkeep stores)",
                backend=self._name,
            )


async def within(seconds: float, call: Awaitable[Any], *, to_the_end: bool) -> Any:
    """Await the driver for so long, or raise TimeoutError. `to_the_end`: it goes on when the caller is cancelled, who
    is told after that; so a commit's end is known."""
    task = asyncio.ensure_future(call)
    try:
        async with asyncio.timeout(seconds):
            return await (asyncio.shield(task) if to_the_end else task)
    except TimeoutError:
        task.cancel()
        raise
    except asyncio.CancelledError:
        if to_the_end:
            await asyncio.wait([task], timeout=seconds)
            task.cancel()
        raise


def _raw_cursor(connection: Any) -> Any:
    if is_async(connection):
        import aiomysql

        return aiomysql.Cursor(connection)
    return connection.cursor()


def is_async(connection: Any) -> bool:
    """Whether it is aiomysql's."""
    return hasattr(connection, "_writer")


def driver_errors() -> type[Exception]:
    """The root of both drivers' exceptions."""
    import pymysql

    return pymysql.err.Error


def close_now(connection: Any) -> None:
    """Close a connection without a farewell, and without its event loop."""
    with contextlib.suppress(Exception):
        if not is_async(connection):
            connection._force_close()
        elif connection._loop.is_closed():
            _close_socket(connection._writer.transport)
            connection._writer = connection._reader = None
        else:
            connection.close()


def _close_socket(transport: Any) -> None:
    """What the transport of a closed loop can't do any more; also keeps its finalizer from complaining of that."""
    over_tls = getattr(transport, "_ssl_protocol", None)
    if over_tls is not None:
        transport._closed = True
        transport = over_tls._transport
    socket, transport._sock = transport._sock, None
    socket.close()


def close_after(connecting: asyncio.Future[Any], connection: Any) -> None:
    """Close a connection that nobody waits for any more, when it has been made or has failed."""
    if not connecting.cancelled():
        connecting.exception()  # seen, so that asyncio does not report it as forgotten
    close_now(connection)


def is_open(connection: Any) -> bool:
    return not connection.closed if is_async(connection) else bool(connection.open)


def is_idle(connection: Any) -> bool:
    """Open, outside of a transaction, and with nothing left to read, by what the last answers said."""
    if not is_open(connection) or getattr(connection._result, "has_next", None):
        return False
    # Kept by the drivers from the last answer without rows, as those to BEGIN and COMMIT are.
    return not (connection.server_status or 0) & IN_TRANSACTION


def is_alive(connection: Any) -> bool:
    """Whether nothing came in on an idle connection: an end of file or a farewell of the server is readable."""
    if not is_open(connection):
        return False
    if is_async(connection):
        reader = connection._reader
        if reader.at_eof() or reader._buffer or reader.exception() is not None:
            return False
        socket = connection._writer.get_extra_info("socket")
    else:
        socket = connection._sock
    return is_silent(socket)
