"""SQL Server and Azure SQL through pymssql. The async form runs in worker threads: there is no asynchronous driver.

A worker thread takes a whole operation, as with SQLite (docs/decisions/0004-sqlite-async.md); why this driver stands in
docs/decisions/0011-sqlserver-driver.md.
"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any

from chatkeep.backends.plugin import BackendPlugin, OpenRequest
from chatkeep.backends.relational import sqlserver_connection
from chatkeep.backends.relational import sqlserver_errors as errors
from chatkeep.backends.relational.backend import RelationalBackend
from chatkeep.backends.relational.dialect import NaiveTimes
from chatkeep.backends.relational.sqlserver_connection import OPTIONS
from chatkeep.backends.relational.sqlserver_errors import number
from chatkeep.backends.relational.sqlserver_text import compile_tsql
from chatkeep.backends.relational.statements import Statement
from chatkeep.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from chatkeep.backends.relational.session import Session
    from chatkeep.migrations.target import Target
    from chatkeep.storage.backend import Backend


class SqlServerDialect(NaiveTimes):
    """An append is two messages to the server: BEGIN and the lock; then the rows, the counters and COMMIT."""

    name = "sqlserver"
    # Of the columns' type: one of another precision would be converted on the way to the index.
    now = moment = "CAST(SYSUTCDATETIME() AS DATETIME2(6))"
    lock = ""
    # Readers look at row versions (READ_COMMITTED_SNAPSHOT) and wait for nobody; who is going to write does.
    lock_hint = "WITH (UPDLOCK, ROWLOCK)"
    first = "OFFSET 0 ROWS FETCH NEXT {limit} ROWS ONLY"
    pipelines = True
    async_bridge = "thread"
    rows_per_insert = 200
    """Nine values each; a statement takes 2,100."""
    bytes_per_insert = 32 * 1024 * 1024
    """Of a message's 256 MiB, in UTF-16."""

    # In two steps, for a statement has one time, that of its begin, and this one may wait for the lock.
    LOCK = """
        DECLARE @key BIGINT, @number BIGINT, @last BIGINT, @system BIGINT, @context BIGINT, @count BIGINT,
                @expiry DATETIME2(6);
        SELECT @key = conversation_key, @number = version, @last = last_position, @system = system_position,
               @context = context_start, @count = message_count, @expiry = expires_at
        FROM chat_conversation {lock_hint} WHERE {which};
        SELECT @key, @number, @last, @system, @context, @count, @expiry, {now} WHERE @key IS NOT NULL
    """
    LOCK_CONVERSATION = LOCK.replace("{which}", "owner = :owner AND conversation_id = :conversation_id")
    LOCK_CONVERSATION_KEY = LOCK.replace("{which}", "conversation_key = :conversation_key")
    # HOLDLOCK locks the gap where the row would be, so that of many writers one makes it and the others see it. No
    # MERGE, which under concurrency is none.
    INSERT_CONVERSATION = """
        INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at)
        SELECT :owner, :conversation_id, {now}, {now} WHERE NOT EXISTS
            (SELECT 1 FROM chat_conversation WITH (UPDLOCK, HOLDLOCK)
             WHERE owner = :owner AND conversation_id = :conversation_id)
    """
    INSERT_MESSAGES = """
        INSERT INTO chat_message
            (conversation_key, position, message_id, role, content, body, token_count, token_estimator, created_at,
             expires_at)
        VALUES {rows}
    """
    MESSAGE_VALUES = (
        "position",
        "message_id",
        "role",
        "content",
        "body",
        "token_count",
        "token_estimator",
        "created_at",
        "expires_at",
    )
    SELECT_SERVER = """
        SELECT CAST(SERVERPROPERTY('ProductVersion') AS NVARCHAR(128)),
               CAST(SERVERPROPERTY('Edition') AS NVARCHAR(128)), DB_NAME(),
               CAST(DATABASEPROPERTYEX(DB_NAME(), 'Collation') AS NVARCHAR(128))
    """
    BEGIN = sqlserver_connection.BEGIN
    COMMIT = sqlserver_connection.COMMIT
    ROLLBACK = sqlserver_connection.ROLLBACK

    def create_engine(self, request: OpenRequest) -> Engine:
        return sqlserver_connection.make_engine(request, self.pool_slice)

    def compile(self, text: str, **fragments: str) -> Statement:
        if text == self.ROLLBACK:
            return Statement(text, "ROLLBACK TRANSACTION")
        return compile_tsql(text, **fragments)

    def driver_errors(self) -> type[Exception]:
        return sqlserver_connection.driver_errors()

    def is_alive(self, connection: Any) -> bool:
        alive: bool = connection.is_alive
        return alive

    def is_idle(self, connection: Any) -> bool:
        idle: bool = connection.is_idle
        return idle

    def abandon(self, connection: Any) -> None:
        connection.close()

    def describe(self, session: Session) -> dict[str, str]:
        import pymssql

        version, edition, database, collation = session.row(self.sql("SELECT_SERVER"))
        return {
            "driver": f"pymssql {importlib.metadata.version('pymssql')} ({pymssql.get_dbversion()})",
            "server": f"SQL Server {version} ({edition}), database {database}, collation {collation}",
        }

    def insert_messages(self, session: Session, rows: list[dict[str, Any]]) -> None:
        values = [rows[0]["conversation_key"], *(row[name] for row in rows for name in self.MESSAGE_VALUES)]
        session.defer(self._insert_of(len(rows)), values)

    def _insert_of(self, count: int) -> Statement:
        """INSERT_MESSAGES for so many rows."""
        key = f"INSERT_MESSAGES {count}"
        compiled = self._compiled.get(key)
        if compiled is None:
            places = ((f":{name}{number}" for name in self.MESSAGE_VALUES) for number in range(count))
            rows = ", ".join(f"(:conversation_key, {', '.join(row)})" for row in places)
            compiled = self._compiled[key] = self.sql("INSERT_MESSAGES", rows=rows)
        return compiled

    # --- errors ---

    def is_duplicate(self, error: Exception) -> bool:
        return number(error) in errors.DUPLICATE and not self._was_raced(error)

    def is_contention(self, error: Exception) -> bool:
        return number(error) in errors.CONTENTION or self._was_raced(error)

    def _was_raced(self, error: Exception) -> bool:
        """Whether another made the same conversation in spite of INSERT_CONVERSATION's lock."""
        return number(error) in errors.DUPLICATE and "chat_conversation_identity" in str(error)

    def is_timeout(self, error: Exception) -> bool:
        return number(error) == errors.SYBETIME

    def is_refused(self, error: Exception) -> bool:
        return number(error) in errors.REFUSED

    def is_disconnect(self, error: Exception) -> bool:
        # Errors of the driver's own have no number: "Not connected to any MS SQL server".
        return number(error) in errors.DISCONNECTED or type(error).__name__ == "MSSQLDriverException"

    def is_capacity(self, error: Exception) -> bool:
        if number(error) == errors.CHECK_VIOLATION:
            return "chat_conversation_numbers" in str(error)
        return number(error) in errors.CAPACITY

    def is_missing_schema(self, error: Exception) -> bool:
        return number(error) in errors.MISSING

    def next_step(self, error: Exception) -> str:
        if number(error) in errors.READ_ONLY:
            return "the database or this replica is read-only; connect to the primary"
        if number(error) in errors.NO_PERMISSION:
            return "this account lacks a right; docs/backends/sqlserver.md lists those it needs"
        if self.is_refused(error):
            return "check the account, its password (CHATKEEP_PASSWORD) and the name of the database"
        return "is the server up, and the URL right?" if self.is_disconnect(error) else ""

    def reason(self, error: Exception) -> str:
        return errors.words(error)


def _open(request: OpenRequest) -> RelationalBackend:
    sqlserver_connection.check_address(request)
    try:
        import pymssql  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "sqlserver: needs pymssql, which is not installed; run: pip install 'chatkeep[sqlserver]'"
        ) from error
    return RelationalBackend(SqlServerDialect(), request)


def _migrations(request: OpenRequest, backend: Backend | None) -> Target:
    from chatkeep.backends.relational.migration import relational_target

    return relational_target(SqlServerDialect(), request, backend)


BACKEND = BackendPlugin(
    name="sqlserver",
    schemes=("sqlserver", "mssql"),
    open=_open,
    drivers=("pymssql",),
    migrations=_migrations,
    options=OPTIONS,
)
