"""The migration target of PostgreSQL: an advisory lock for each schema, a file sent as one message."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Collection, Iterator

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.migration import RelationalTarget
from chatkeep.backends.relational.session import Session
from chatkeep.errors import SchemaError, StorageTimeoutError


class PostgresqlTarget(RelationalTarget):
    """A schema of a database. The lock is an advisory one of the session, so the connection must be a direct one."""

    NEEDED_OPTIONS = ("search_path", "sslmode", "sslrootcert", "sslcert", "sslkey")
    account = "with an account that may create tables (its password goes into CHATKEEP_PASSWORD)"
    MINIMUM = 130000
    HOME = """
        SELECT current_schema(), current_setting('search_path'),
               (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE c.oid = to_regclass(:history))
    """
    ELSEWHERE = """
        SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relname = :history AND c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg!_%' ESCAPE '!'
        ORDER BY 1 LIMIT 5
    """
    HOLDER = """
        SELECT a.pid, a.usename, a.application_name, a.backend_start FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.database =
              (SELECT oid FROM pg_database WHERE datname = current_database())
          AND l.classid = :high AND l.objid = :low
    """

    def _names(self, request: OpenRequest) -> tuple[str, str]:
        url, options = request.url, request.options
        host = self._address(request, "the local socket")
        schema = f", schema {options['search_path']}" if "search_path" in options else ""
        place = f"PostgreSQL on {host}, database {url.database or url.username or '(default)'}{schema}"
        return place, self._url_to_type(request)

    def check(self) -> str | None:
        with self._session() as session:
            version, shown, encoding = session.row(
                "SELECT current_setting('server_version_num'), current_setting('server_version'), "
                "current_setting('server_encoding')"
            )
        if int(version) < self.MINIMUM:
            return f"the server is PostgreSQL {shown}, and chatkeep needs {self.MINIMUM // 10000} or newer"
        if encoding != "UTF8":
            return (
                f"the database has the encoding {encoding}, which can't hold every text; chatkeep needs UTF8. The "
                f"encoding is fixed at creation: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
            )
        return None

    def missing(self, tables: Collection[str]) -> list[str]:
        with self._session() as session:
            found = "SELECT to_regclass(:name) IS NOT NULL"
            return sorted(name for name in tables if not session.row(self._sql(found), {"name": name})[0])

    def hint(self) -> str | None:
        with self._session() as session:
            current, path, _ = session.row(self._sql(self.HOME), {"history": self.history_table})
            others = [row[0] for row in session.rows(self._sql(self.ELSEWHERE), {"history": self.history_table})]
        looked = f"Looked in the search_path {path}" + (
            "" if current else ", of which no schema exists that this account may use"
        )
        if others:
            return (
                f"{looked}; the database has a {self.history_table} in {', '.join(others)}: if that is the one, set "
                f"the option search_path, and GRANT USAGE on the schema to this account."
            )
        return f"{looked}."

    def _has_history(self, session: Session) -> bool:
        found: bool = session.row(self._sql("SELECT to_regclass(:name) IS NOT NULL"), {"name": self.history_table})[0]
        return found

    @contextlib.contextmanager
    def _hold(self, session: Session, seconds: float) -> Iterator[None]:
        key = self._lock_key(session)
        self._acquire(session, key, seconds)
        try:
            self._set(session, seconds)
            yield
        finally:
            # On a broken connection the server has already let the lock go.
            with contextlib.suppress(self._driver_errors()):
                session.roll_back()
                session.row(self._sql("SELECT pg_advisory_unlock(:key)"), {"key": key})
                self._reset(session)

    def _lock_key(self, session: Session) -> int:
        """One lock per schema. Refuses a search_path under which new tables would not go where the old ones are."""
        current, path, home = session.row(self._sql(self.HOME), {"history": self.history_table})
        if current is None:
            raise SchemaError(
                f"{self.place}: no schema of the search_path {path} exists and may be used by this account, so there "
                f"is no place for the tables; CREATE SCHEMA first, or set the option search_path",
                backend=self.backend,
            )
        if home is not None and home != current:
            raise SchemaError(
                f"{self.place}: the tables are in schema {home}, but under the search_path {path} new ones would be "
                f"made in {current}; migrate with the option search_path={home}",
                backend=self.backend,
            )
        return int.from_bytes(hashlib.sha256(f"chatkeep schema {current}".encode()).digest()[:8], "big", signed=True)

    def _set(self, session: Session, seconds: float) -> None:
        """For the time of the lock: the application's own time-outs would cut a step short."""
        session.run("SET statement_timeout = 0")
        session.run("SET idle_in_transaction_session_timeout = 0")
        # While a step waits for a table, everyone else queues up behind it: it gives up in time.
        session.run(f"SET lock_timeout = {max(int(seconds * 1000), 1)}")
        # A migration that was killed lets its lock go soon, not at the end of a long statement. From version 14 on,
        # and not on every platform.
        with contextlib.suppress(self._driver_errors()):
            session.run("SET client_connection_check_interval = '2s'")

    def _reset(self, session: Session) -> None:
        session.run("RESET statement_timeout")
        session.run("RESET idle_in_transaction_session_timeout")
        session.run("RESET lock_timeout")
        with contextlib.suppress(self._driver_errors()):
            session.run("RESET client_connection_check_interval")

    def _acquire(self, session: Session, key: int, seconds: float) -> None:
        # Asked again and again: a session waiting in pg_advisory_lock would hold a snapshot, for which a CREATE INDEX
        # CONCURRENTLY of the lock's holder waits in turn.
        deadline = time.monotonic() + seconds
        while not session.row(self._sql("SELECT pg_try_advisory_lock(:key)"), {"key": key})[0]:
            left = deadline - time.monotonic()
            if left <= 0:
                raise StorageTimeoutError(
                    f"{self.place}: another migration holds the lock, {self._holder(session, key)}; waited for it "
                    f"{seconds:g} s. Let it end, or end it with SELECT pg_terminate_backend(pid), and run "
                    f"`{self.command('migrate')}`.",
                    backend=self.backend,
                )
            time.sleep(min(0.2, left))

    def _holder(self, session: Session, key: int) -> str:
        halves = {"high": key >> 32 & 0xFFFFFFFF, "low": key & 0xFFFFFFFF}
        row = session.row(self._sql(self.HOLDER), halves)
        if row is None:
            return "which has just been let go"
        pid, user, application, since = row
        return f"server process {pid} ({user}, {application or 'no application_name'}, since {since:%Y-%m-%d %H:%M:%S})"

    def _run_script(self, session: Session, script: str) -> None:
        # One message of the simple protocol, without parameters: no splitting, and % stays %.
        with session.patient():
            session.run(script)

    def _line(self, error: Exception, script: str) -> int | None:
        position = getattr(getattr(error, "diag", None), "statement_position", None)
        return None if position is None else script.count("\n", 0, int(position)) + 1


TARGET = PostgresqlTarget
