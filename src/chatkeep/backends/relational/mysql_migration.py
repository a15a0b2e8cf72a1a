"""The migration target of MySQL, and of MariaDB beside it: a named lock, and DDL that commits by itself.

A step leaves a row with success = false before its first statement, and its own last statement turns that to true. The
row holds the checksum from the start, so that no death leaves a step that is done and unknown.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections.abc import Collection, Iterator
from typing import Any

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.migration import DELETE_STEP, HISTORY, RelationalTarget
from chatkeep.backends.relational.session import Session
from chatkeep.errors import SchemaError, StorageTimeoutError
from chatkeep.migrations.files import SchemaFile, schema_files
from chatkeep.migrations.target import Applied

ER_PARSE_ERROR = 1064
_TOKEN = re.compile(
    r"""
      '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `[^`]*`
    | --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*.*?\*/
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = re.compile(r"(?:\s+|--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/)*", re.DOTALL)
"""Without /*! and /*M!, whose content is run."""


class MysqlTarget(RelationalTarget):
    """A database of a server. The lock is GET_LOCK's, by the database's name; it belongs to the connection."""

    transactional_ddl = False
    rerunnable = True
    NEEDED_OPTIONS = ("unix_socket", "sslmode", "sslrootcert", "sslcert", "sslkey")
    account = "with an account that may create tables (its password goes into CHATKEEP_PASSWORD)"
    PRODUCT = "MySQL"
    MINIMUM = (8, 0, 17)
    """The first with the collation utf8mb4_0900_bin."""
    STATEMENT_LIMIT = "max_execution_time"
    """The session's time limit for statements."""
    TABLES = "SELECT LOWER(table_name) FROM information_schema.tables WHERE table_schema = DATABASE()"
    ELSEWHERE = """
        SELECT table_schema FROM information_schema.tables WHERE LOWER(table_name) = :history ORDER BY 1 LIMIT 5
    """
    MADE_AT = """
        SELECT create_time FROM information_schema.tables
        WHERE table_schema = DATABASE() AND LOWER(table_name) = :history
    """
    HOLDER = "SELECT user, host, command, time, info FROM information_schema.processlist WHERE id = :id"
    MARK = f"""
        INSERT INTO {HISTORY} (version, description, checksum, applied_at, success)
        VALUES (:version, :description, :checksum, UTC_TIMESTAMP(6), FALSE)
    """  # noqa: S608
    DONE = f"SELECT 1 FROM {HISTORY} WHERE version = :version AND success"  # noqa: S608
    COMPLETE = f"""
        INSERT INTO {HISTORY} (version, description, checksum, applied_at, success)
        VALUES (:version, :description, NULL, UTC_TIMESTAMP(6), TRUE)
        ON DUPLICATE KEY UPDATE checksum = NULL, success = TRUE
    """  # noqa: S608

    def _names(self, request: OpenRequest) -> tuple[str, str]:
        url = request.url
        host = request.options.get("unix_socket") or self._address(request, "localhost")
        place = f"{self.PRODUCT} on {host}, database {url.database}"
        return place, self._url_to_type(request)

    def check(self) -> str | None:
        with self._session() as session:
            shown = str(session.row("SELECT VERSION()")[0])
        found = tuple(int(part) for part in re.findall(r"\d+", shown)[:3])
        if found < self.MINIMUM:
            wanted = ".".join(map(str, self.MINIMUM))
            return f"the server is {self.PRODUCT} {shown}, and chatkeep needs {wanted} or newer"
        return None

    def missing(self, tables: Collection[str]) -> list[str]:
        with self._session() as session:
            return sorted(set(tables) - {row[0] for row in session.rows(self.TABLES)})

    def hint(self) -> str | None:
        with self._session() as session:
            user = session.row("SELECT CURRENT_USER()")[0]
            others = [row[0] for row in session.rows(self._sql(self.ELSEWHERE), {"history": HISTORY})]
        if others:
            return (
                f"Looked as {user}, to whom a {HISTORY} is visible in {', '.join(others)}: if that is the one, the URL "
                f"names the wrong database."
            )
        return (
            f"Looked as {user}; to an account, a table on which it has no right is invisible: if the tables are there, "
            f"GRANT SELECT on {HISTORY} to it."
        )

    # --- what was applied ---

    def history(self) -> list[Applied] | None:
        found = self._rows()
        if self._held is not None or not found or all(row.success for row in found):
            return found
        with self._session() as session:
            under_way = self._holder(session) is not None
        if under_way:
            # The step isn't dead but under way: whoever wants it too is to wait for the lock, and look again.
            return [row for row in found if row.success] or None
        # Nobody is at it, unless it came to its end between the two looks: a third one tells.
        return self._rows()

    def _rows(self) -> list[Applied] | None:
        """The rows; of an empty history, the row that the first file had not come to."""
        found = super().history()
        if found != []:
            return found
        with self._session() as session:
            made = session.row(self._sql(self.MADE_AT), {"history": HISTORY})
            if made is None:
                return None
            first, made_at = self._first(), session.dialect.from_time(made[0])
        return [Applied(first.version, first.description, None, made_at, success=False)]

    def _first(self) -> SchemaFile:
        return schema_files(self.backend, self.directory)[0]

    def _has_history(self, session: Session) -> bool:
        return (HISTORY,) in [tuple(row) for row in session.rows(self.TABLES)]

    # --- the lock ---

    @contextlib.contextmanager
    def _hold(self, session: Session, seconds: float) -> Iterator[None]:
        limits = (self.STATEMENT_LIMIT, "lock_wait_timeout", "innodb_lock_wait_timeout")
        before = session.row(f"SELECT {', '.join(f'@@{name}' for name in limits)}")
        wait = max(int(seconds), 1)
        with session.patient():
            try:
                # The application's own limit would cut a step short, and the wait for the lock.
                session.run(f"SET {self.STATEMENT_LIMIT} = 0")
                self._acquire(session, seconds)
                # While a step waits for a table, everyone else queues up behind it: it gives up in time.
                session.run(f"SET lock_wait_timeout = {wait}, innodb_lock_wait_timeout = {wait}")
                yield
            finally:
                # On a broken connection the server has already let the lock go.
                with contextlib.suppress(self._driver_errors()):
                    session.roll_back()
                    session.row(self._sql("SELECT RELEASE_LOCK(:lock)"), self._lock(session))
                    restored = (f"{name} = {value}" for name, value in zip(limits, before, strict=True))
                    session.run(f"SET {', '.join(restored)}")

    def _lock(self, session: Session) -> dict[str, str]:
        # Names are the server's, not a database's, of up to 64 characters and without regard to case.
        database = str(session.row("SELECT DATABASE()")[0]).lower()
        return {"lock": f"chatkeep schema {hashlib.sha256(database.encode()).hexdigest()[:40]}"}

    def _acquire(self, session: Session, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        lock = self._lock(session)
        while True:
            left = deadline - time.monotonic()
            # In short waits: the server looks only now and then whether the one who waits is still there.
            if session.row(self._sql(f"SELECT GET_LOCK(:lock, {int(left > 0)})"), lock)[0] == 1:
                return
            if left <= 0:
                raise StorageTimeoutError(self._held_by_another(session, seconds), backend=self.backend)

    def _holder(self, session: Session) -> int | None:
        """The connection that holds the lock. Needs no rights."""
        found: int | None = session.row(self._sql("SELECT IS_USED_LOCK(:lock)"), self._lock(session))[0]
        return found

    def _held_by_another(self, session: Session, seconds: float) -> str:
        number = self._holder(session)
        if number is None:
            who, end = "which has just let it go", "Run"
        else:
            # Others' connections are seen with the right PROCESS only.
            row = session.row(self._sql(self.HOLDER), {"id": number})
            who = f"connection {number}" + (f" ({_doing(*row)})" if row else "")
            end = f"Let it end, or end it with KILL {number}, and run"
        return (
            f"{self.place}: another migration holds the lock, {who}; waited for it {seconds:g} s. "
            f"{end} `{self.command('migrate')}`."
        )

    # --- one step ---

    def apply(self, version: int, description: str, checksum: str, script: str) -> None:
        session = self._locked()
        mark = {"version": version, "description": description, "checksum": checksum}
        marked, ran = False, 0
        try:
            marked = self._mark(session, mark)
            for line, statement in mysql_statements(script):
                self._run(session, line, statement)
                ran += 1
                # The first file makes the history table itself.
                marked = marked or self._mark(session, mark)
            # A transaction that the file left open would be undone with the connection.
            session.run("COMMIT")
            done = session.row(self._sql(self.DONE), {"version": version})
        except self._driver_errors() as error:
            at_risk = session.at_risk
            if marked and not ran:
                # One statement takes effect whole or not at all, so nothing is left that would have to be repaired.
                with contextlib.suppress(self._driver_errors()):
                    self.forget(version)
            raise self._translated(error, script, at_risk=at_risk) from error
        if done is None:
            raise SchemaError(f"the file does not end by inserting row {version} into {HISTORY}")

    def forget(self, version: int) -> None:
        session = self._locked()
        session.run(self._sql(DELETE_STEP), {"version": version})
        if session.row(f"SELECT 1 FROM {HISTORY} LIMIT 1") is None:  # noqa: S608
            # Empty it would say that the first file began.
            session.run(f"DROP TABLE {HISTORY}")

    def complete(self, version: int) -> None:
        # The first file may have died before its row.
        values = {"version": version, "description": self._first().description}
        self._locked().run(self._sql(self.COMPLETE), values)

    def _mark(self, session: Session, mark: dict[str, Any]) -> bool:
        """Leave word that the step has begun, where the history table is there."""
        if not self._has_history(session):
            return False
        session.run(self._sql(self.MARK), mark)
        return True

    def _run_script(self, session: Session, script: str) -> None:
        for line, statement in mysql_statements(script):
            self._run(session, line, statement)

    def _run(self, session: Session, line: int, statement: str) -> None:
        try:
            session.run(statement)
        except self._driver_errors() as error:
            error.__dict__["line"] = line + _lines_down(error)
            raise

    def _line(self, error: Exception, script: str) -> int | None:
        return getattr(error, "line", None)


def _doing(user: str, host: str, command: str, seconds: int, statement: str | None) -> str:
    what = f"running {' '.join(statement.split())[:60]!r}" if statement else "idle" if command == "Sleep" else command
    return f"{user}, from {host}, {what} for {seconds} s"


def _lines_down(error: Exception) -> int:
    """How far into its statement an error lies, where the parser says so."""
    found = re.search(r" at line (\d+)$", str(error.args[-1]))
    return int(found[1]) - 1 if found and error.args[0] == ER_PARSE_ERROR else 0


def mysql_statements(script: str) -> Iterator[tuple[int, str]]:
    """Each statement with the number of the line it begins on. Knows quotes and comments, and no DELIMITER."""
    begun = 0
    for end in [match.start() for match in _TOKEN.finditer(script) if match["end"]] + [len(script)]:
        comments = _COMMENTS.match(script, begun, end)
        start = comments.end() if comments else begun
        if script[start:end].strip():
            yield script.count("\n", 0, start) + 1, script[start:end].rstrip()
        begun = end + 1


TARGET = MysqlTarget
