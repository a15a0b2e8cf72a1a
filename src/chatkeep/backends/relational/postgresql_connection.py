"""What a PostgreSQL connection is made with: the options, their checks, and psycopg's parameters."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from typing import Any

from chatkeep import config
from chatkeep.backends.plugin import OpenRequest, Option

STATEMENT_TIMEOUT = 30.0


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))  # 0 would mean none


def connect_args(options: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of psycopg.connect; the session's settings travel with the connection request, no extra trip."""
    settings = {
        "timezone": "UTC",
        "datestyle": "ISO",  # the only one that psycopg reads
        # Under the stricter levels, writers of one conversation would fail instead of waiting for each other.
        "default_transaction_isolation": "read\\ committed",
        "statement_timeout": _milliseconds(options.get("statement_timeout", STATEMENT_TIMEOUT)),
    }
    if "lock_timeout" in options:
        settings["lock_timeout"] = _milliseconds(options["lock_timeout"])
    if "search_path" in options:
        settings["search_path"] = options["search_path"]
    arguments: dict[str, Any] = {
        "autocommit": True,
        "connect_timeout": max(2, round(options.get("connect_timeout", 10.0))),  # libpq: whole seconds, at least 2
        "client_encoding": "utf8",
        "application_name": options.get("application_name", "chatkeep"),
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        # Notices a dead peer within half a minute, also while a statement is under way.
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }
    if not options.get("prepared_statements", True):
        arguments["prepare_threshold"] = None
    for name in PASSED_ON:
        if name in options:
            arguments[name] = options[name]
    return arguments


def connector(request: OpenRequest) -> Callable[[], Any]:
    """What makes a connection of this request's kind that doesn't wait for ever.

    statement_timeout is the server's own, so that a server which is silent, or a network that swallows its replies
    while it goes on answering probes, would keep a caller for good. psycopg has no limit of its own for that.
    """
    import psycopg
    from psycopg.conninfo import make_conninfo

    url = request.url
    where = make_conninfo(host=url.host, port=url.port, user=url.username, password=url.password, dbname=url.database)
    arguments = connect_args(request.options)
    # A little more than the server's own, which leaves the connection whole.
    seconds = float(request.options.get("statement_timeout", STATEMENT_TIMEOUT)) + 1.0

    class Connection(psycopg.Connection[Any]):
        patience: float | None = seconds

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return super().wait(_bounded(gen, self.patience), *args, **options)

    class AsyncConnection(psycopg.AsyncConnection[Any]):
        patience: float | None = seconds

        async def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return await super().wait(_bounded(gen, self.patience), *args, **options)

    if request.asynchronous:

        def connect_async() -> Awaitable[Any]:
            return AsyncConnection.connect(where, **arguments)

        return connect_async
    return lambda: Connection.connect(where, **arguments)


def _bounded(steps: Generator[Any, Any, Any], seconds: float | None) -> Generator[Any, Any, Any]:
    """The steps of an exchange with the server; psycopg looks in several times a second while nothing comes."""
    from psycopg.errors import ConnectionTimeout

    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        waits_for = next(steps)
        while True:
            ready = yield waits_for
            if not ready and deadline is not None and time.monotonic() > deadline:
                raise ConnectionTimeout(f"no answer from the server within {seconds:g} s")
            waits_for = steps.send(ready)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


@contextlib.contextmanager
def patient(connection: Any) -> Iterator[None]:
    """Within the context, no time-out of ours ends a statement."""
    before, connection.patience = connection.patience, None
    try:
        yield
    finally:
        connection.patience = before


PASSED_ON = ("sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs")


def _schema_name(value: Any) -> str:
    if not isinstance(value, str) or not value.replace("_", "a").isalnum() or not value.isascii() or value[0].isdigit():
        raise ValueError("expected one schema name of ASCII letters, digits and _")
    return value.lower()


def _on_off(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return bool(config.parse_choice("on", "off")(value) == "on")


OPTIONS = (
    Option("pool_size", config.parse_count(1, 1000), "connections at most, in each process and event loop (10)"),
    Option("pool_timeout", config.parse_seconds, "how long a call waits for a connection (30 s)"),
    Option("pool_recycle", config.parse_seconds, "connections older than this are replaced (30 min)"),
    Option("connect_timeout", config.parse_seconds, "how long a connection may take to open (10 s)"),
    Option("statement_timeout", config.parse_seconds, "how long a statement may run (30 s)"),
    Option("lock_timeout", config.parse_seconds, "how long a statement may wait for a lock"),
    Option("search_path", _schema_name, "the schema that holds the tables"),
    Option("application_name", config.parse_name, "shown in pg_stat_activity (chatkeep)"),
    Option("prepared_statements", _on_off, "off behind a pooler that can't keep them (on)"),
    Option("sslmode", config.parse_choice("disable", "allow", "prefer", "require", "verify-ca", "verify-full"), "TLS"),
    Option("sslrootcert", config.parse_text, "file of the certificate authority"),
    Option("sslcert", config.parse_text, "file of the client's certificate"),
    Option("sslkey", config.parse_text, "file of the client's key"),
    Option(
        "target_session_attrs",
        config.parse_choice("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
        "which of several hosts",
    ),
)
