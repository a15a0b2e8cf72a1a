"""The migration target of SQL Server: an application lock for each schema, the batches of a file in one transaction."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterator

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.migration import ENDED_BY_ITSELF, HISTORY, RelationalTarget
from chatkeep.backends.relational.session import Session
from chatkeep.backends.relational.sqlserver_text import literal
from chatkeep.errors import Outcome, SchemaError, StorageTimeoutError

AZURE = {5, 8, 12}
"""EngineEdition of SQL Database, Managed Instance and Fabric's SQL database, whose version number stands still."""
_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*' | "(?:[^"]|"")*" | \[(?:[^\]]|\]\])*\] | --[^\n]* | /\*.*?\*/
    | ^[ \t]*(?P<go>GO)\b(?P<rest>[^\n]*)\n?
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE,
)


class SqlServerTarget(RelationalTarget):
    """A database of a server. The lock belongs to the session; DDL is part of the transaction."""

    NEEDED_OPTIONS = ("encryption",)
    account = "with an account that may create tables (its password goes into CHATKEEP_PASSWORD)"
    transaction = ("BEGIN TRANSACTION;", "COMMIT TRANSACTION;")
    MINIMUM = 15
    """SQL Server 2019."""
    PRODUCT = """
        SELECT CAST(SERVERPROPERTY('ProductMajorVersion') AS INT), CAST(SERVERPROPERTY('EngineEdition') AS INT),
               CAST(SERVERPROPERTY('ProductVersion') AS NVARCHAR(128)),
               CAST(SERVERPROPERTY('BabelfishVersion') AS NVARCHAR(128)), QUOTENAME(DB_NAME()),
               (SELECT CAST(is_read_committed_snapshot_on AS INT) FROM sys.databases WHERE database_id = DB_ID())
    """
    TABLE = "SELECT OBJECT_ID(:name, N'U')"
    ELSEWHERE = """
        SELECT TOP (5) s.name FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id
        WHERE t.name = :name ORDER BY s.name
    """
    ACQUIRE = """
        DECLARE @got INT; EXEC @got = sp_getapplock @Resource = {lock}, @LockMode = 'Exclusive', @LockOwner = 'Session',
            @LockTimeout = 200; SELECT @got
    """
    RELEASE = "EXEC sp_releaseapplock @Resource = {lock}, @LockOwner = 'Session'"
    HOLDER = """
        SELECT TOP (1) s.session_id, s.login_name, s.program_name, s.login_time
        FROM sys.dm_tran_locks l JOIN sys.dm_exec_sessions s ON s.session_id = l.request_session_id
        WHERE l.resource_type = 'APPLICATION' AND l.request_status = 'GRANT' AND l.request_owner_type = 'SESSION'
          AND l.resource_database_id = DB_ID() AND l.resource_description LIKE '%chatkeep schema%'
    """
    # A lock of the transaction is gone where the file ended the transaction, also if it began another one.
    MARK = """
        EXEC sp_getapplock @Resource = N'chatkeep step', @LockMode = 'Shared', @LockOwner = 'Transaction',
            @LockTimeout = 0
    """
    MARKED = """
        SELECT CASE WHEN @@TRANCOUNT = 1 THEN APPLOCK_MODE('public', 'chatkeep step', 'Transaction') END
    """
    _batch_begins = 1

    def _names(self, request: OpenRequest) -> tuple[str, str]:
        url = request.url
        host = self._address(request, "localhost")
        place = f"SQL Server on {host}, database {url.database or '(the default of the login)'}"
        return place, self._url_to_type(request)

    def check(self) -> str | None:
        with self._session() as session:
            major, edition, version, babelfish, database, row_versions = session.row(self._sql(self.PRODUCT))
        if babelfish is not None:
            return (
                f"the server is Babelfish {babelfish}, which passes over the locks that writers queue up at; connect "
                f"to its PostgreSQL port with a postgresql: URL"
            )
        if edition not in AZURE and (major or 0) < self.MINIMUM:
            return f"the server is SQL Server {version}, and chatkeep needs 2019 ({self.MINIMUM}.0) or newer"
        if not row_versions:
            return (
                f"the database has READ_COMMITTED_SNAPSHOT OFF, so that readers would wait for writers and could see "
                f"half of a change. Turn it on, which ends the other connections to this database: "
                f"ALTER DATABASE {database} SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE"
            )
        return None

    def missing(self, tables: Collection[str]) -> list[str]:
        with self._session() as session:
            return sorted(name for name in tables if not self._exists(session, name))

    def hint(self) -> str | None:
        with self._session() as session:
            user, schema = session.row("SELECT USER_NAME(), SCHEMA_NAME()")
            others = [row[0] for row in session.rows(self._sql(self.ELSEWHERE), {"name": HISTORY})]
        looked = f"Looked as user {user} in the schemas {schema} and dbo"
        if others:
            return (
                f"{looked}; the database has a {HISTORY} in {', '.join(others)}: if that is the one, make it the "
                f"user's DEFAULT_SCHEMA, and GRANT SELECT on the tables."
            )
        return f"{looked}, and a user sees only the tables that it has a right on."

    def _exists(self, session: Session, name: str) -> bool:
        return session.row(self._sql(self.TABLE), {"name": name})[0] is not None

    def _has_history(self, session: Session) -> bool:
        return self._exists(session, HISTORY)

    @contextlib.contextmanager
    def _hold(self, session: Session, seconds: float) -> Iterator[None]:
        schema, before = session.row("SELECT SCHEMA_NAME(), @@LOCK_TIMEOUT")
        lock = literal(f"chatkeep schema {schema}")
        self._acquire(session, lock, seconds)
        try:
            # While a step waits for a table, everyone else queues up behind it: it gives up in time.
            session.run(f"SET LOCK_TIMEOUT {max(int(seconds * 1000), 1)}")
            yield
        finally:
            # On a broken connection the server has already let the lock go.
            with contextlib.suppress(self._driver_errors()):
                session.roll_back()
                session.run(self.RELEASE.format(lock=lock))
                session.run(f"SET LOCK_TIMEOUT {int(before)}")

    def _acquire(self, session: Session, lock: str, seconds: float) -> None:
        # In short waits: nothing could interrupt a long one within the driver.
        deadline = time.monotonic() + seconds
        while session.row(self.ACQUIRE.format(lock=lock))[0] < 0:
            if time.monotonic() >= deadline:
                raise StorageTimeoutError(
                    f"{self.place}: another migration holds the lock, {self._holder(session)}; waited for it "
                    f"{seconds:g} s. Let it end, or end it with KILL, and run `{self.command('migrate')}`.",
                    backend=self.backend,
                )

    def _holder(self, session: Session) -> str:
        try:
            row = session.row(self.HOLDER)
        except self._driver_errors():
            return "whose session only an account with VIEW SERVER STATE sees"
        if row is None:
            return "which has just been let go"
        number, login, program, since = row
        return f"session {number} ({login}, {program or 'no program name'}, since {since:%Y-%m-%d %H:%M:%S})"

    def _mark_begin(self, session: Session) -> None:
        session.run(self.MARK)

    def _check_end(self, session: Session) -> None:
        if session.row(self.MARKED)[0] != "Shared":
            raise SchemaError(ENDED_BY_ITSELF, outcome=Outcome.UNKNOWN)

    def _run_script(self, session: Session, script: str) -> None:
        for self._batch_begins, batch in batches(script):
            session.run(batch)

    def _line(self, error: Exception, script: str) -> int | None:
        line = getattr(error, "line", None)
        return self._batch_begins + line - 1 if line else None


def batches(script: str) -> Iterator[tuple[int, str]]:
    """What stands between lines that hold only GO, each batch with the number of its first line."""
    begun = 0
    for match in _TOKEN.finditer(script):
        if match["go"] is None:
            continue
        rest = match["rest"].partition("--")[0].strip()
        line = script.count("\n", 0, match.start()) + 1
        if rest:
            raise SchemaError(f"line {line}: behind GO stands {rest!r}; a count is not taken, write the batch out")
        yield from _batch(script, begun, match.start())
        begun = match.end()
    yield from _batch(script, begun, len(script))


def _batch(script: str, begun: int, end: int) -> Iterator[tuple[int, str]]:
    if script[begun:end].strip():
        yield script.count("\n", 0, begun) + 1, script[begun:end]


TARGET = SqlServerTarget
