"""How a MySQL or MariaDB connection is made, sync through PyMySQL and async through aiomysql."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from chatkeep import config
from chatkeep.backends.plugin import OpenRequest, Option
from chatkeep.backends.relational.mysql_cursor import client_timeout, close_after
from chatkeep.backends.relational.mysql_errors import CR_CONN_HOST_ERROR
from chatkeep.backends.relational.pooling import pool_arguments
from chatkeep.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import Engine

LOCK_TIMEOUT = 10.0
TLS_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")

OPTIONS = (
    Option("pool_size", config.parse_count(1, 1000), "connections at most, in each process and event loop (10)"),
    Option("pool_timeout", config.parse_seconds, "how long a call waits for a connection (30 s)"),
    Option("pool_recycle", config.parse_seconds, "connections older than this are replaced (30 min)"),
    Option("connect_timeout", config.parse_seconds, "how long a connection may take to open (10 s)"),
    Option("statement_timeout", config.parse_seconds, "how long a statement may run (30 s)"),
    Option("lock_timeout", config.parse_seconds, "how long a statement may wait for a lock, in whole seconds (10 s)"),
    Option("application_name", config.parse_name, "program_name of the session's connection attributes (chatkeep)"),
    Option("unix_socket", config.parse_text, "the server's socket file, in place of host and port"),
    Option("sslmode", config.parse_choice(*TLS_MODES), "TLS (prefer)"),
    Option("sslrootcert", config.parse_text, "file of the certificate authority"),
    Option("sslcert", config.parse_text, "file of the client's certificate"),
    Option("sslkey", config.parse_text, "file of the client's key"),
)


def make_engine(request: OpenRequest, pool_slice: float) -> Engine:
    """A pool of connections in autocommit mode."""
    from sqlalchemy import create_engine
    from sqlalchemy.ext.asyncio import create_async_engine

    pool = pool_arguments(request.options, pool_slice)
    if request.asynchronous:
        return create_async_engine("mysql+aiomysql://", async_creator=_async_connect(request), **pool).sync_engine
    return create_engine("mysql+pymysql://", creator=_connect(request), **pool)


def _connect(request: OpenRequest) -> Callable[[], Any]:
    import pymysql

    arguments = _arguments(request)
    mode = request.options.get("sslmode", "prefer")
    if mode == "disable":
        arguments["ssl_disabled"] = True
    else:
        arguments["ssl"] = _tls_context(request)
    seconds = client_timeout(request)
    # PyMySQL's own limit ends with the TCP connection; a server may be silent after that.
    arguments |= {"read_timeout": arguments["connect_timeout"], "write_timeout": arguments["connect_timeout"]}

    def connect() -> Any:
        connection: Any = pymysql.connect(**arguments, defer_connect=True)
        if mode == "prefer":
            # PyMySQL's own mode of this name makes a TLS context for each connection, which costs more than the rest.
            connection._ssl_required = False
        connection.connect()
        connection._read_timeout = connection._write_timeout = seconds
        return connection

    return connect


def _async_connect(request: OpenRequest) -> Callable[[], Awaitable[Any]]:
    import aiomysql
    from pymysql.constants import CLIENT
    from pymysql.err import OperationalError

    mode = request.options.get("sslmode", "prefer")
    arguments = _arguments(request)
    # It takes a str and sends it as Latin-1, where servers compare UTF-8.
    arguments["password"] = arguments["password"].decode("latin-1")
    arguments["ssl"] = None if mode == "disable" else _tls_context(request)

    class Connection(aiomysql.Connection):  # type: ignore[misc]
        """With the modes of TLS: aiomysql goes on in plain text where the server has none."""

        def close(self) -> None:
            # Without TLS's own farewell, which takes a reply of the server, and a loop that lives on until it is there.
            if self._writer is not None:
                self._writer.transport.abort()
            super().close()

        async def ensure_closed(self) -> None:
            try:
                await super().ensure_closed()
            finally:
                self.close()  # also where the server is gone and can't be told farewell

        async def _request_authentication(self) -> None:
            if self._ssl_context and not self.server_capabilities & CLIENT.SSL:
                if mode != "prefer":
                    raise OperationalError(2026, "SSL is required, but the server doesn't support it")
                self._ssl_context: Any = None
                self.client_flag &= ~CLIENT.SSL
            await super()._request_authentication()

    async def connect() -> Any:
        connection = Connection(**arguments)
        seconds = arguments["connect_timeout"]
        # Not cancelled with its caller, since asyncio leaves a socket open where a TLS handshake is cancelled before
        # it has begun: it ends by itself, and is closed then.
        task = asyncio.ensure_future(connection._connect())
        try:
            # aiomysql's own limit ends with the TCP connection; a server may be silent after that.
            async with asyncio.timeout(seconds):
                await asyncio.shield(task)
        except BaseException as error:
            task.add_done_callback(lambda done: close_after(done, connection))
            if isinstance(error, TimeoutError):
                task.cancel()
                raise OperationalError(CR_CONN_HOST_ERROR, "Can't connect to MySQL server (timed out)") from error
            asyncio.get_running_loop().call_later(seconds, task.cancel)
            raise
        return connection

    return connect


def _arguments(request: OpenRequest) -> dict[str, Any]:
    from pymysql.constants import CLIENT

    url, options = request.url, request.options
    arguments: dict[str, Any] = {
        "host": url.host or "localhost",
        "port": url.port or 3306,
        "user": url.username,
        "password": str(url.password or "").encode(),
        "charset": "utf8mb4",
        "autocommit": True,
        # Several statements in one message: BEGIN with the first, COMMIT with the last. Without FOUND_ROWS, which
        # SQLAlchemy would set: a count is that of changed rows.
        "client_flag": CLIENT.MULTI_STATEMENTS,
        "connect_timeout": options.get("connect_timeout", 10.0),
        "program_name": options.get("application_name", "chatkeep"),
    }
    # Each driver has a name of its own for it, but both know this one.
    arguments["db" if request.asynchronous else "database"] = url.database or None
    if "unix_socket" in options:
        arguments["unix_socket"] = options["unix_socket"]
    return arguments


def _tls_context(request: OpenRequest) -> ssl.SSLContext:
    options = request.options
    mode = options.get("sslmode", "prefer")
    if "sslrootcert" in options and not mode.startswith("verify"):
        raise ConfigurationError("sslrootcert is for sslmode=verify-ca and sslmode=verify-full; set one of them")
    try:
        if mode.startswith("verify"):
            context = ssl.create_default_context(cafile=options.get("sslrootcert"))
            context.check_hostname = mode == "verify-full"
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if "sslcert" in options:
            context.load_cert_chain(options["sslcert"], options.get("sslkey"))
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(f"sslrootcert, sslcert or sslkey can't be read ({error})") from error
    return context


def session_settings(options: Mapping[str, Any]) -> str:
    """What every session sets, whatever the server's defaults are."""
    return "; ".join(
        (
            # First, and whatever init_connect did: the driver quotes values as UTF-8, and under another character set
            # a quote can be part of a character.
            "SET NAMES utf8mb4",
            # Under the stricter levels writers of one conversation would read old snapshots, and gaps would be locked.
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET autocommit = 1, completion_type = 0",
            # What would cut or refuse reads and writes that are meant.
            "SET sql_select_limit = DEFAULT, sql_big_selects = 1, sql_safe_updates = 0",
            f"SET time_zone = '+00:00', "
            f"innodb_lock_wait_timeout = {math.ceil(options.get('lock_timeout', LOCK_TIMEOUT))}, "
            # Strict: what doesn't fit is an error and is never cut. No ANSI_QUOTES, no PIPES_AS_CONCAT.
            "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
        )
    )
