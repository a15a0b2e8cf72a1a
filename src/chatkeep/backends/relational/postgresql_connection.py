"""What a PostgreSQL connection is made with: the options, their checks, and psycopg's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chatkeep import config
from chatkeep.backends.plugin import Option


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))  # 0 would mean none


def connect_args(options: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of psycopg.connect; the session's settings travel with the connection request, no extra trip."""
    settings = {
        "timezone": "UTC",
        "datestyle": "ISO",  # the only one that psycopg reads
        # Under the stricter levels, writers of one conversation would fail instead of waiting for each other.
        "default_transaction_isolation": "read\\ committed",
        "statement_timeout": _milliseconds(options.get("statement_timeout", 30.0)),
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
