"""PostgreSQL through psycopg 3, sync and async. An append to a known conversation is one statement, one round trip."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from chatkeep.backends.plugin import BackendPlugin, OpenRequest
from chatkeep.backends.relational.backend import RelationalBackend
from chatkeep.backends.relational.dialect import CAPABILITIES, Dialect
from chatkeep.backends.relational.pooling import is_silent, pool_arguments
from chatkeep.backends.relational.postgresql_connection import OPTIONS, connector, patient
from chatkeep.backends.relational.statements import NUMBERS
from chatkeep.errors import ConfigurationError
from chatkeep.storage.record import MessageRecord
from chatkeep.urls import check_host

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from chatkeep.backends.relational.session import Session
    from chatkeep.migrations.target import Target
    from chatkeep.storage.backend import Backend, Write

# https://www.postgresql.org/docs/current/errcodes-appendix.html
UNIQUE_VIOLATION = "23505"
CHECK_VIOLATION = "23514"
SERIALIZATION_FAILURE = "40001"
DEADLOCK_DETECTED = "40P01"
LOCK_NOT_AVAILABLE = "55P03"
QUERY_CANCELED = "57014"
"""statement_timeout, or a cancel request."""
CONTENTION = frozenset({SERIALIZATION_FAILURE, DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE})
MISSING = frozenset({"42P01", "42703", "3F000"})
"""undefined_table, undefined_column, invalid_schema_name"""
DISCONNECTED = ("08", "57P", "25P03", "25P04")
"""Classes: connection exception; operator intervention (admin_shutdown, crash_shutdown, cannot_connect_now, …); and
the server's time-outs that end the session: idle in transaction, transaction."""
NEXT_STEPS = {
    "25006": "the server or this account is read-only; connect to the primary (target_session_attrs=read-write)",
    "42501": "this account lacks a right; docs/backends/postgresql.md lists those it needs",
    "53300": "the server has no connection left; lower pool_size or raise its max_connections",
}
"""By SQLSTATE: read_only_sql_transaction, insufficient_privilege, too_many_connections."""
CAPACITY = ("53", "54")
"""Classes: insufficient resources (disk_full, …); program limit exceeded."""

REFUSED = ("28", "3D", "42501")
"""Classes: invalid authorization; invalid catalog name (no such database). And insufficient_privilege."""
REFUSED_TEXT = re.compile(
    "(password|authentication|SCRAM|GSSAPI|LDAP|PAM) .*failed|no password supplied|no pg_hba.conf entry|"
    'role ".*" (does not exist|is not permitted)|database ".*" does not exist|permission denied for database'
)
"""In English, as servers speak unless lc_messages says otherwise; an unknown text counts as a broken connection."""

IDLE = 0
"""PQTRANS_IDLE of libpq."""

_rows = msgspec.json.Encoder()


class PostgresqlDialect(Dialect):
    """Connections are in autocommit mode, so that a single statement is a transaction in one round trip."""

    name = "postgresql"
    paramstyle = "pyformat"
    now = "clock_timestamp()"
    moment = "statement_timestamp()"
    capabilities = msgspec.structs.replace(CAPABILITIES, native_async=True, vectors=True)
    BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"

    # Rows travel as one JSON parameter: one statement for any number of them, prepared once.
    MESSAGE_ROWS = """
        json_to_recordset(:rows ::json) AS m(n bigint, message_id text, role text, content text, body text,
            token_count integer, token_estimator text, created_at timestamptz, expires_at timestamptz)
    """
    # The update takes the row's lock; positions are allocated under it, and the rows of one call lie side by side.
    APPEND = """
        WITH head AS (
            UPDATE chat_conversation
            SET version = version + 1, last_position = last_position + :count, message_count = message_count + :count,
                system_position = COALESCE(last_position + :system_offset ::bigint, system_position),
                expires_at = LEAST(expires_at, {now} + :ttl ::interval), updated_at = {now}
            WHERE owner = :owner AND conversation_id = :conversation_id
              AND (:expected_key ::bigint IS NULL OR (conversation_key = :expected_key AND version = :expected_number))
            RETURNING conversation_key, version, last_position - :count AS base, {now} + :ttl ::interval AS ends_at
        ), stored AS (
            {insert_rows}
        )
        SELECT conversation_key, version FROM head
    """
    APPEND_NEW = """
        WITH head AS (
            INSERT INTO chat_conversation (owner, conversation_id, version, last_position, message_count,
                                           system_position, expires_at, created_at, updated_at)
            VALUES (:owner, :conversation_id, 1, :count, :count,
                    :system_offset ::bigint, {now} + :ttl ::interval, {now}, {now})
            ON CONFLICT (owner, conversation_id) DO NOTHING
            RETURNING conversation_key, version, 0 AS base, {now} + :ttl ::interval AS ends_at
        ), stored AS (
            {insert_rows}
        )
        SELECT conversation_key, version FROM head
    """
    INSERT_ROWS = """
        INSERT INTO chat_message
            (conversation_key, position, message_id, role, content, body, token_count, token_estimator, created_at,
             expires_at)
        SELECT head.conversation_key, head.base + m.n, m.message_id, m.role, m.content, m.body, m.token_count,
               m.token_estimator, m.created_at, head.ends_at
        FROM head CROSS JOIN {message_rows}
    """
    INSERT_MESSAGES = """
        INSERT INTO chat_message
            (conversation_key, position, message_id, role, content, body, token_count, token_estimator, created_at,
             expires_at)
        SELECT :conversation_key, m.n, m.message_id, m.role, m.content, m.body, m.token_count, m.token_estimator,
               m.created_at, m.expires_at
        FROM {message_rows}
    """
    # The sum's type is not left to the parameters'.
    UPDATE_COUNTS = Dialect.UPDATE_COUNTS.replace("CASE position {cases} END", "(CASE position {cases} END) ::integer")
    SELECT_SERVER = """
        SELECT current_setting('server_version'), current_database(), current_setting('server_encoding')
    """

    def create_engine(self, request: OpenRequest) -> Engine:
        from sqlalchemy import create_engine
        from sqlalchemy.ext.asyncio import create_async_engine

        pool = pool_arguments(request.options, self.pool_slice)
        connect = connector(request)
        if request.asynchronous:
            return create_async_engine("postgresql+psycopg://", async_creator=connect, **pool).sync_engine
        return create_engine("postgresql+psycopg://", creator=connect, **pool)

    def driver_errors(self) -> type[Exception]:
        import psycopg

        return psycopg.Error

    def prepare(self, connection: Any, driver_connection: Any) -> None:
        # Start-up parameters can lose: to PGTZ in the environment, or to a pooler that drops them. The server reports
        # these two, so that looking costs no round trip.
        told = driver_connection.info.parameter_status
        if told("TimeZone") != "UTC" or not (told("DateStyle") or "").startswith("ISO"):
            cursor = connection.cursor()
            cursor.execute("SET TIME ZONE 'UTC'; SET datestyle = 'ISO'")
            cursor.close()

    def patient(self, cursor: Any) -> contextlib.AbstractContextManager[None]:
        return patient(cursor.connection)

    def is_alive(self, connection: Any) -> bool:
        return not connection.closed and is_silent(connection.pgconn.socket)

    def is_idle(self, connection: Any) -> bool:
        return bool(connection.pgconn.transaction_status == IDLE)

    def abandon(self, connection: Any) -> None:
        connection.pgconn.finish()

    def next_step(self, error: Exception) -> str:
        if _state(error) in NEXT_STEPS:
            return NEXT_STEPS[_state(error)]
        if self.is_refused(error):
            return "check the account, its password (CHATKEEP_PASSWORD) and the name of the database"
        return "is the server up, and the URL right?" if self.is_disconnect(error) else ""

    def describe(self, session: Session) -> dict[str, str]:
        import psycopg

        version, database, encoding = session.row(self.sql("SELECT_SERVER"))
        return {
            "driver": f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__})",
            "server": f"PostgreSQL {version}, database {database}, encoding {encoding}",
        }

    def message(self, row: Sequence[Any]) -> MessageRecord:
        return MessageRecord(*row)  # psycopg's times are aware already

    def append_at_once(self, session: Session, write: Write) -> int | None:
        records = write.records
        size = sum(len(record.content) + len(record.body or "") for record in records)
        if len(records) > self.rows_per_insert or size > self.bytes_per_insert:
            return None
        offset = write.system_offset
        expected = write.expected_version
        parameters = {
            "owner": write.owner,
            "conversation_id": write.conversation_id,
            "count": len(records),
            "system_offset": None if offset is None else offset + 1,
            "ttl": write.ttl.life,
            "expected_key": None if expected is None else expected // NUMBERS,
            "expected_number": None if expected is None else expected % NUMBERS,
            "rows": _rows.encode(
                [
                    {
                        "n": number,
                        "message_id": record.message_id,
                        "role": record.role,
                        "content": record.content,
                        "body": record.body,
                        "token_count": record.token_count,
                        "token_estimator": record.token_estimator,
                        "created_at": record.created_at,
                    }
                    for number, record in enumerate(records, 1)
                ]
            ).decode(),
        }
        row = None
        if expected != 0:
            row = session.row_of_write(self.sql("APPEND"), parameters)
        if row is None and not expected:
            row = session.row_of_write(self.sql("APPEND_NEW"), parameters)
        # Still None: made or deleted by another between the two, or the version is stale; the slow way finds out.
        return None if row is None else int(row[0]) * NUMBERS + int(row[1])

    def insert_messages(self, session: Session, rows: list[dict[str, Any]]) -> None:
        encoded = _rows.encode([{**row, "n": row["position"]} for row in rows]).decode()
        session.run(self.sql("INSERT_MESSAGES"), {"conversation_key": rows[0]["conversation_key"], "rows": encoded})

    def is_duplicate(self, error: Exception) -> bool:
        return _state(error) == UNIQUE_VIOLATION

    def is_contention(self, error: Exception) -> bool:
        return _state(error) in CONTENTION

    def is_timeout(self, error: Exception) -> bool:
        return _state(error) == QUERY_CANCELED or type(error).__name__ == "ConnectionTimeout"

    def is_refused(self, error: Exception) -> bool:
        state = _state(error)
        # libpq's errors of connecting have no state; an account or database that is refused stays so.
        return state.startswith(REFUSED) or (not state and bool(REFUSED_TEXT.search(str(error))))

    def is_disconnect(self, error: Exception) -> bool:
        state = _state(error)
        if state == QUERY_CANCELED:
            return False
        # libpq's own errors ("server closed the connection unexpectedly") have no state.
        return state.startswith(DISCONNECTED) or (not state and type(error).__name__ in LOST)

    def is_capacity(self, error: Exception) -> bool:
        return _state(error).startswith(CAPACITY) or (
            _state(error) == CHECK_VIOLATION and "chat_conversation_numbers" in str(error)
        )

    def is_missing_schema(self, error: Exception) -> bool:
        return _state(error) in MISSING


LOST = frozenset({"OperationalError", "InterfaceError", "ConnectionFailure", "ConnectionTimeout"})


def _state(error: Exception) -> str:
    return getattr(error, "sqlstate", None) or ""


def _open(request: OpenRequest) -> RelationalBackend:
    check_host(request.url, "postgresql")
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "postgresql: needs psycopg, which is not installed; run: pip install 'chatkeep[postgresql]'"
        ) from error
    return RelationalBackend(PostgresqlDialect(), request)


def _migrations(request: OpenRequest, backend: Backend | None) -> Target:
    from chatkeep.backends.relational.migration import relational_target

    return relational_target(PostgresqlDialect(), request, backend)


def _vector_migrations(request: OpenRequest, backend: Backend | None) -> Target:
    from chatkeep.backends.relational.migration import vector_target

    return vector_target(_migrations(request, backend))


BACKEND = BackendPlugin(
    name="postgresql",
    schemes=("postgresql", "postgres"),
    open=_open,
    drivers=("psycopg",),
    migrations=_migrations,
    vector_migrations=_vector_migrations,
    options=OPTIONS,
)
