"""MySQL through PyMySQL, and aiomysql in the async form. MariaDB's dialect is made of the same parts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from chatkeep.backends.plugin import BackendPlugin, OpenRequest
from chatkeep.backends.relational import mysql_connection, mysql_cursor, mysql_errors
from chatkeep.backends.relational.backend import RelationalBackend
from chatkeep.backends.relational.dialect import CAPABILITIES, NaiveTimes
from chatkeep.backends.relational.mysql_connection import OPTIONS
from chatkeep.backends.relational.mysql_cursor import STATEMENT_TIMEOUT
from chatkeep.backends.relational.mysql_errors import number
from chatkeep.backends.relational.statements import Statement
from chatkeep.errors import ConfigurationError
from chatkeep.urls import check_host

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from chatkeep.backends.relational.session import Session
    from chatkeep.migrations.target import Target
    from chatkeep.storage.backend import Backend

DEFAULT_PACKET = 16 * 1024 * 1024


class MysqlDialect(NaiveTimes):
    """An append is two messages to the server: BEGIN and the lock; then the rows, the counters and COMMIT."""

    name = "mysql"
    product = "MySQL"
    paramstyle = "format"
    # The clock itself, not the statement's begin: a statement may have waited for its lock. Sessions are in UTC.
    now = "SYSDATE(6)"
    moment = "UTC_TIMESTAMP(6)"
    pipelines = True
    capabilities = msgspec.structs.replace(CAPABILITIES, native_async=True)
    BEGIN = "BEGIN"
    # No INSERT IGNORE, which would pass over values that don't fit as well. The assignment changes nothing: one row is
    # counted where it was inserted, and none where it was there.
    INSERT_CONVERSATION = """
        INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at)
        VALUES (:owner, :conversation_id, {now}, {now})
        ON DUPLICATE KEY UPDATE conversation_key = conversation_key
    """
    INSERT_MESSAGES = """
        INSERT INTO chat_message
            (conversation_key, position, message_id, role, content, body, token_count, token_estimator, created_at,
             expires_at) VALUES
    """
    ROW = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    SELECT_SERVER = "SELECT VERSION(), DATABASE(), @@max_allowed_packet"

    def __init__(self) -> None:
        super().__init__()
        self._request: OpenRequest | None = None
        self._most_bytes = DEFAULT_PACKET

    @property
    def bytes_per_insert(self) -> int:  # type: ignore[override]
        """A quarter of the server's max_allowed_packet: each byte may be escaped."""
        return max(64 * 1024, min(4 * 1024 * 1024, self._most_bytes // 4))

    def create_engine(self, request: OpenRequest) -> Engine:
        self._request = request
        return mysql_connection.make_engine(request, self.pool_slice)

    def driver_errors(self) -> type[Exception]:
        return mysql_cursor.driver_errors()

    def prepare(self, connection: Any, driver_connection: Any) -> None:
        assert self._request is not None
        self.check_product(driver_connection.get_server_info())
        settings = f"{mysql_connection.session_settings(self._request.options)}; {self._statement_timeout()}"
        cursor = self._cursor(driver_connection)
        cursor.execute(f"{settings}; SELECT @@max_allowed_packet, @@character_set_client")
        most_bytes, character_set = cursor.fetchone()
        if character_set != "utf8mb4":
            raise ConfigurationError(f"{self.name}: the server keeps the session in {character_set}, not in utf8mb4")
        self._most_bytes = int(most_bytes)

    def cursor(self, connection: Any) -> Any:
        return self._cursor(connection.driver_connection)

    def _cursor(self, driver_connection: Any) -> mysql_cursor.MysqlCursor:
        assert self._request is not None
        return mysql_cursor.MysqlCursor(driver_connection, self._request, self._most_bytes, self.name)

    def _statement_timeout(self) -> str:
        assert self._request is not None
        seconds = self._request.options.get("statement_timeout", STATEMENT_TIMEOUT)
        # For SELECT only; what writes wait for is a lock, and that has a time-out of its own.
        return f"SET max_execution_time = {max(1, round(seconds * 1000))}"

    def check_product(self, version: str) -> None:
        """Refuse the other product: its collations, its limits and its schema files differ."""
        if "mariadb" in version.lower():
            raise ConfigurationError(f"mysql: the server is MariaDB {version}; use a mariadb: URL")

    def patient(self, cursor: Any) -> contextlib.AbstractContextManager[None]:
        patient: contextlib.AbstractContextManager[None] = cursor.patient()
        return patient

    def is_alive(self, connection: Any) -> bool:
        return mysql_cursor.is_alive(connection)

    def is_idle(self, connection: Any) -> bool:
        return mysql_cursor.is_idle(connection)

    def abandon(self, connection: Any) -> None:
        mysql_cursor.close_now(connection)

    def describe(self, session: Session) -> dict[str, str]:
        version, database, packet = session.row(self.sql("SELECT_SERVER"))
        return {
            "driver": self._driver(),
            "server": f"{self.product} {version}, database {database}, max_allowed_packet {packet >> 20}M",
        }

    def _driver(self) -> str:
        import pymysql

        if self._request is not None and self._request.asynchronous:
            import aiomysql

            return f"aiomysql {aiomysql.__version__} over PyMySQL {pymysql.VERSION_STRING}"
        return f"PyMySQL {pymysql.VERSION_STRING}"  # its __version__ is that of the mysqlclient it stands in for

    def insert_messages(self, session: Session, rows: list[dict[str, Any]]) -> None:
        text = f"{self.sql('INSERT_MESSAGES')} {', '.join([self.ROW] * len(rows))}"
        shown = f"{self.sql('INSERT_MESSAGES').shown} ({len(rows)} rows)"
        session.defer(Statement(text, shown), [value for row in rows for value in row.values()])

    # --- errors ---

    def is_duplicate(self, error: Exception) -> bool:
        return number(error) == mysql_errors.ER_DUP_ENTRY

    def is_contention(self, error: Exception) -> bool:
        return number(error) in mysql_errors.CONTENTION

    def is_timeout(self, error: Exception) -> bool:
        return number(error) in mysql_errors.TIMEOUT or (
            number(error) == mysql_errors.CR_SERVER_LOST and mysql_errors.TIMED_OUT in str(error)
        )

    def is_refused(self, error: Exception) -> bool:
        return number(error) in mysql_errors.REFUSED or mysql_errors.UNTRUSTED in mysql_errors.words(error)

    def is_disconnect(self, error: Exception) -> bool:
        return number(error) in mysql_errors.DISCONNECTED

    def is_capacity(self, error: Exception) -> bool:
        if number(error) in mysql_errors.CHECK_VIOLATED:
            return "chat_conversation_numbers" in str(error)
        return number(error) in mysql_errors.CAPACITY or bool(mysql_errors.DISK_FULL.search(str(error)))

    def is_missing_schema(self, error: Exception) -> bool:
        return number(error) in mysql_errors.MISSING

    def reason(self, error: Exception) -> str:
        text = mysql_errors.words(error).strip().partition("\n")[0]
        return f"{type(error).__name__} {number(error)}: {text[:300]}"

    def next_step(self, error: Exception) -> str:
        if number(error) in mysql_errors.READ_ONLY:
            return "the server or this account is read-only; connect to the primary"
        if mysql_errors.UNTRUSTED in mysql_errors.words(error):
            return "check sslrootcert, the file of the authority; sslmode=require encrypts without a check"
        if number(error) == mysql_errors.ER_NO_DB:
            return f"the URL names no database; expected {self.name}://user@host/database"
        if number(error) == mysql_errors.ER_CON_COUNT:
            return "the server has no connection left; lower pool_size or raise its max_connections"
        if number(error) == mysql_errors.ER_NET_PACKET_TOO_LARGE:
            return "raise the server's max_allowed_packet; 64M holds the largest message chatkeep stores"
        if self.is_refused(error):
            return "check the account, its password (CHATKEEP_PASSWORD), its rights and the name of the database"
        return "is the server up, and the URL right?" if self.is_disconnect(error) else ""


def open_with(dialect: type[MysqlDialect], request: OpenRequest) -> RelationalBackend:
    """The backend of a URL, after a look at what can be seen without a connection."""
    name = dialect.name
    check_host(request.url, name)
    if not request.url.database:
        raise ConfigurationError(f"{name}: the URL names no database; expected {name}://user@host/database")
    try:
        import pymysql  # noqa: F401

        if request.asynchronous:
            import aiomysql  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"{name}: needs {error.name}, which is not installed; run: pip install 'chatkeep[{name}]'"
        ) from error
    return RelationalBackend(dialect(), request)


def _open(request: OpenRequest) -> RelationalBackend:
    return open_with(MysqlDialect, request)


def _migrations(request: OpenRequest, backend: Backend | None) -> Target:
    from chatkeep.backends.relational.migration import relational_target

    return relational_target(MysqlDialect(), request, backend)


BACKEND = BackendPlugin(
    name="mysql",
    schemes=("mysql",),
    open=_open,
    drivers=("pymysql", "aiomysql"),
    migrations=_migrations,
    options=OPTIONS,
)
