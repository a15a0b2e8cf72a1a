"""How a SQL Server connection is made through pymssql, and a cursor that takes whole messages.

Stands on `pymssql._mssql`, the driver's lower and documented level: unlike the upper one it keeps an error's number and
line, and leaves statements as they are.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from chatkeep import config
from chatkeep.backends.plugin import OpenRequest, Option
from chatkeep.backends.relational.pooling import is_silent, pool_arguments
from chatkeep.backends.relational.sqlserver_text import bind
from chatkeep.errors import ConfigurationError
from chatkeep.forking import Lock
from chatkeep.urls import check_host

if TYPE_CHECKING:
    from sqlalchemy import Engine

LOCK_TIMEOUT = 10.0
PORT = 1433
BEGIN = "BEGIN TRANSACTION"
COMMIT = "COMMIT TRANSACTION"
ROLLBACK = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION"
"""An error may have rolled back already."""

OPTIONS = (
    Option("pool_size", config.parse_count(1, 1000), "connections at most, in each process (10)"),
    Option("pool_timeout", config.parse_seconds, "how long a call waits for a connection (30 s)"),
    Option("pool_recycle", config.parse_seconds, "connections older than this are replaced (30 min)"),
    Option("connect_timeout", config.parse_seconds, "how long a connection may take to open, in whole seconds (10 s)"),
    Option("lock_timeout", config.parse_seconds, "how long a statement may wait for a lock (10 s)"),
    Option("application_name", config.parse_name, "program_name in sys.dm_exec_sessions (chatkeep)"),
    Option(
        "encryption",
        config.parse_choice("require", "request", "off"),
        "require: all is encrypted; request: the login is; off: nothing is (require)",
    ),
)


def settings(lock_timeout: float) -> str:
    """What every session sets, whatever the server's and the database's defaults are."""
    return "; ".join(
        (
            # These seven are the condition for indexes on computed columns and for filtered indexes.
            *(f"SET {name} ON" for name in ("ANSI_NULLS", "ANSI_PADDING", "ANSI_WARNINGS", "ARITHABORT")),
            *(f"SET {name} ON" for name in ("CONCAT_NULL_YIELDS_NULL", "QUOTED_IDENTIFIER")),
            "SET NUMERIC_ROUNDABORT OFF",
            "SET ANSI_NULL_DFLT_ON ON",
            "SET IMPLICIT_TRANSACTIONS OFF",
            "SET CURSOR_CLOSE_ON_COMMIT OFF",
            # Any error undoes the whole transaction and ends the message, so that its later statements don't run.
            "SET XACT_ABORT ON",
            # Counts come as rows: that of a statement within sp_executesql would be lost among the others.
            "SET NOCOUNT ON",
            "SET TEXTSIZE 2147483647",
            # Under the stricter levels writers of one conversation would fail, or wait for readers.
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            f"SET LOCK_TIMEOUT {max(1, round(lock_timeout * 1000))}",
        )
    )


def make_engine(request: OpenRequest, pool_slice: float) -> Engine:
    """A pool of connections in autocommit mode, for the sync form and for the threads of the async one."""
    from sqlalchemy import create_engine

    return create_engine("mssql+pymssql://", creator=_connect(request), **pool_arguments(request.options, pool_slice))


def driver_errors() -> type[Exception]:
    from pymssql import _mssql

    root: type[Exception] = _mssql.MSSQLException
    return root


def check_address(request: OpenRequest) -> None:
    """Refuse what pymssql would read in another way."""
    check_host(request.url, "sqlserver")
    host = request.url.host or ""
    if ":" in host:
        raise ConfigurationError("sqlserver: pymssql takes no IPv6 address; give the host's name")
    if "\\" in host:
        raise ConfigurationError("sqlserver: give the port of a named instance in place of its name")


def _connect(request: OpenRequest) -> Callable[[], SqlServerConnection]:
    from pymssql import _mssql

    url, options = request.url, request.options
    seconds = math.ceil(options.get("connect_timeout", 10.0))
    begin = settings(options.get("lock_timeout", LOCK_TIMEOUT))

    def connect() -> SqlServerConnection:
        # The driver keeps it for the whole process and reads it right away.
        _mssql.login_timeout = seconds
        connection = SqlServerConnection(
            _mssql.connect(
                server=url.host or "localhost",
                port=str(url.port or PORT),
                user=url.username,
                password=None if url.password is None else str(url.password),
                database=url.database or "",
                charset="UTF-8",
                appname=options.get("application_name", "chatkeep"),
                # Without it the driver tries one version of the protocol after the other.
                tds_version="7.4",
                encryption=options.get("encryption", "require"),
                conn_properties="",
            )
        )
        try:
            with _Sockets() as seen:
                connection.cursor().execute(begin)
            connection.socket = seen.number
        except BaseException:
            connection.close()
            raise
        return connection

    return connect


class _Sockets:
    """Within the context, the number of the socket that this thread's statements wait for.

    The driver tells it to nobody but its wait callback, of which a process has one; an earlier one is called as well,
    and put back.
    """

    _lock = Lock()
    _waiting: ClassVar[dict[int, _Sockets]] = {}
    _earlier: ClassVar[Callable[[int], object] | None] = None

    def __init__(self) -> None:
        self.number: int | None = None

    def __enter__(self) -> _Sockets:
        from pymssql import _mssql

        with self._lock.now:
            if not self._waiting:
                _Sockets._earlier = _mssql.wait_callback
                _mssql.set_wait_callback(_Sockets._seen)
            self._waiting[threading.get_ident()] = self
        return self

    def __exit__(self, *_: object) -> None:
        from pymssql import _mssql

        with self._lock.now:
            self._waiting.pop(threading.get_ident(), None)
            if not self._waiting and _mssql.wait_callback == _Sockets._seen:
                _mssql.set_wait_callback(_Sockets._earlier)

    @classmethod
    def _seen(cls, number: int) -> None:
        mine = cls._waiting.get(threading.get_ident())
        if mine is not None:
            mine.number = number
        if cls._earlier is not None:
            cls._earlier(number)


class SqlServerConnection:
    """A connection that knows whether a transaction or a statement is under way, which the driver doesn't tell."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.socket: int | None = None
        self.in_transaction = False
        self.busy = False
        """A message was sent, and its answer is not known to have come to its end."""

    def cursor(self) -> SqlServerCursor:
        return SqlServerCursor(self)

    @property
    def is_alive(self) -> bool:
        """Whether it is connected, by the driver's word and by what its socket has to read."""
        return bool(self.raw.connected) and (self.socket is None or is_silent(self.socket))

    @property
    def is_idle(self) -> bool:
        return bool(self.raw.connected) and not self.busy and not self.in_transaction

    def close(self) -> None:
        """At once; the server rolls back what was open."""
        self.raw.close()


class SqlServerCursor:
    """Sends one message of one or several statements, and reads the answer to its end."""

    __slots__ = ("_connection", "_rows")

    def __init__(self, connection: SqlServerConnection) -> None:
        self._connection = connection
        self._rows: list[Any] = []

    def execute(self, statements: str, values: Sequence[Any] | None = None) -> None:
        """Run the statements; an error of any of them is raised. The rows are those of the last that has some."""
        connection = self._connection
        text = statements if values is None else bind(statements, values)
        if statements.startswith(BEGIN):
            connection.in_transaction = True
        # Stays so where anything but an error of the driver breaks in: then nobody knows what is still to be read.
        connection.busy = True
        try:
            self._rows = _results(connection.raw, text)
        except driver_errors():
            # The driver has read, or cancelled, what was left of the answer.
            connection.busy = False
            raise
        if statements.endswith((COMMIT, ROLLBACK)):
            connection.in_transaction = False
        connection.busy = False

    @property
    def rowcount(self) -> int:
        """Of a write, which ends with SELECT @@ROWCOUNT; -1 where nothing was counted."""
        counted = self._rows[0][0] if self._rows else None
        return counted if isinstance(counted, int) else -1

    def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows

    def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    def close(self) -> None:
        """Nothing is left to read."""


def _results(raw: Any, text: str) -> list[Any]:
    from pymssql import _mssql

    raw.execute_query(text)
    rows = list(raw.get_iterator(_mssql.ROW_FORMAT_TUPLE))
    while raw.nextresult():
        rows = list(raw.get_iterator(_mssql.ROW_FORMAT_TUPLE))
    return rows
