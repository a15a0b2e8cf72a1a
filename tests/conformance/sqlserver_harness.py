"""The harness of SQL Server: a database for each namespace, on the server that tests/services.py hands out.

Each database compares text without case and accents by default, so that the whole suite runs on the worst collation.
"""

import contextlib
import datetime as dt
import re
import time
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import pymssql
from sqlalchemy.engine import make_url

from chatkeep import open_repository
from chatkeep.backends.relational.sqlserver_text import literal, tsql, type_of
from tests import services
from tests.conformance.relational_harness import RELATIONAL, ServerHarness

NOT_AT_COMMIT = "the engine checks and runs nothing at the commit; tests/faults cut the connection there"
THROW = "THROW 50001, 'refused by a trigger', 1"


class SqlserverHarness(ServerHarness):
    backend = "sqlserver"
    schemes = ("sqlserver", "mssql")
    drivers = ("pymssql",)
    extra = "sqlserver"
    NOW = "SYSUTCDATETIME()"
    ANALYZE = "UPDATE STATISTICS {table}"
    expected_capabilities = RELATIONAL
    append_statements = 3
    one_connection: ClassVar = {"pool_size": "1"}
    impatient: ClassVar = {"lock_timeout": "0.2"}
    cannot: ClassVar = {
        "clock": "the clock is the server's own",
        "rejecting_commit": NOT_AT_COMMIT,
        "dying_at_commit": NOT_AT_COMMIT,
    }

    def __init__(self) -> None:
        service = services.service_url(self.backend)
        if service.url is None:
            services.skip_or_fail(self.backend, service.reason or "no reason given")
        self.server = make_url(service.url)
        self.admin = self._connect("master")

    def close(self) -> None:
        self.admin.close()

    def empty_url(self) -> str:
        name = f"test_{uuid.uuid4().hex}"
        self._run(self.admin, f"CREATE DATABASE {name} COLLATE SQL_Latin1_General_CP1_CI_AI")
        versions = self._run(
            self.admin, "SELECT is_read_committed_snapshot_on FROM sys.databases WHERE name = %s", (name,)
        )
        if not versions[0][0]:
            self._run(self.admin, f"ALTER DATABASE {name} SET READ_COMMITTED_SNAPSHOT ON")
        # The application's name tells the sessions of one namespace from others of the same server.
        url = self.server.set(database=name).update_query_dict({"application_name": name})
        return url.render_as_string(hide_password=False)

    def fresh_url(self) -> str:
        url = self.empty_url()
        open_repository(url, schema="migrate").close()
        return url

    def drop(self, url: str) -> None:
        self.kill_sessions(url)
        self._run(self.admin, "USE master")
        self._run(self.admin, f"DROP DATABASE {self._name(url)}")

    def query(self, url: str, statement: str, *values: Any) -> list[Any]:
        self._run(self.admin, f"USE {self._name(url)}")
        return self._run(self.admin, statement.replace("?", "%s"), values)

    def time(self, moment: dt.datetime) -> Any:
        return moment.astimezone(dt.UTC).replace(tzinfo=None)

    def rejecting_insert(self, url: str, text: str) -> contextlib.AbstractContextManager[None]:
        trigger = f"""
            CREATE TRIGGER act ON chat_message AFTER INSERT AS
            IF EXISTS (SELECT 1 FROM inserted WHERE content = N'{text}') {THROW}
        """
        return self.within(url, [trigger], ["DROP TRIGGER act"])

    def kill_sessions(self, url: str) -> int:
        found = self._sessions(url)
        for number in found:
            with contextlib.suppress(pymssql.OperationalError):  # gone meanwhile
                self._run(self.admin, f"KILL {number}")
        # KILL only asks; a session that was idle is gone a moment later, another once it has rolled back.
        for _ in range(500):
            if not set(found) & set(self._sessions(url)):
                break
            time.sleep(0.01)
        return len(found)

    def count_sessions(self, url: str) -> int:
        return len(self._sessions(url))

    @contextlib.contextmanager
    def locked(self, url: str, conversation_id: str) -> Iterator[None]:
        connection = self._connect(self._name(url))
        try:
            self._run(connection, "BEGIN TRANSACTION")
            statement = "UPDATE chat_conversation SET title = title WHERE conversation_id = %s; SELECT @@ROWCOUNT"
            assert self._run(connection, statement, (conversation_id,)) == [(1,)]
            yield
        finally:
            connection.close()

    @contextlib.contextmanager
    def server_zone(self, zone: str) -> Iterator[None]:
        # Sessions have no zone here; the order of a date's parts is that of the login's language.
        login = f"[{self.server.username}]"
        before = self._run(
            self.admin, "SELECT default_language_name FROM sys.server_principals WHERE name = SUSER_SNAME()"
        )
        self._run(self.admin, f"ALTER LOGIN {login} WITH DEFAULT_LANGUAGE = British")
        try:
            yield
        finally:
            self._run(self.admin, f"ALTER LOGIN {login} WITH DEFAULT_LANGUAGE = [{before[0][0] or 'us_english'}]")

    def explain(self, url: str, statement: str) -> str:
        if statement.startswith("INSERT INTO chat_message"):
            return "rows that are given"
        longest = "SELECT TOP (1) conversation_key, conversation_id FROM chat_conversation ORDER BY message_count DESC"
        key, conversation_id = self.query(url, longest)[0]
        samples = {
            "owner": "",
            "conversation_id": conversation_id,
            "conversation_key": key,
            "limit": 5,
            "id0": "x",
            "after": key << 30,
            "before": (key << 30) + 100_000,
            "after_id": "a",
            "after_time": dt.datetime.now(),
        }
        names = dict.fromkeys(re.findall(r":([a-z_]\w*)", statement))
        declared = " ".join(
            f"DECLARE @{name} {'BIGINT' if name == 'before' else type_of(name)} = {literal(samples.get(name, 1))};"
            for name in names
        )
        connection = self._connect(self._name(url))
        try:
            self._run(connection, "SET SHOWPLAN_TEXT ON")
            return "\n".join(row[0] for row in self._run(connection, f"{declared} {tsql(statement)}"))
        finally:
            connection.close()

    def plan_is_bounded(self, plan: str) -> bool:
        return not re.search(r"\bScan\(OBJECT:\(\[[^\]]*\]\.\[[^\]]*\]\.\[chat_|--Sort\(", plan)

    def _sessions(self, url: str) -> list[int]:
        statement = "SELECT session_id FROM sys.dm_exec_sessions WHERE program_name = %s"
        return [row[0] for row in self._run(self.admin, statement, (self._name(url),))]

    def _connect(self, database: str) -> pymssql.Connection:
        server = self.server
        return pymssql.connect(
            server=server.host or "localhost",
            port=str(server.port or 1433),
            user=server.username,
            password=str(server.password or ""),
            database=database,
            autocommit=True,
            tds_version="7.4",
            use_datetime2=True,
        )

    def _run(self, connection: pymssql.Connection, statement: str, values: Any = None) -> list[Any]:
        """The rows of all results."""
        cursor = connection.cursor()
        if values:
            cursor.execute(statement, tuple(values))
        else:
            cursor.execute(statement)
        rows = list(cursor.fetchall()) if cursor.description else []
        while cursor.nextset():
            rows += cursor.fetchall()
        return rows

    def _name(self, url: str) -> str:
        name = str(make_url(url).database)
        assert re.fullmatch(r"test_[0-9a-f]{32}", name), "only namespaces of this harness are touched"
        return name
