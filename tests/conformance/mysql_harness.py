"""The harness of MySQL, and of MariaDB beside it: a database for each namespace, on the server of tests/services.py.

Each database has the worst of the usual defaults, Latin-1 compared without case, so that the whole suite runs on them.
"""

import contextlib
import datetime as dt
import re
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import pymysql
from sqlalchemy.engine import make_url

from chatkeep import open_repository
from tests import services
from tests.conformance.relational_harness import RELATIONAL, ServerHarness

NOT_AT_COMMIT = "the engine checks and runs nothing at the commit; tests/faults cut the connection there"


class MysqlHarness(ServerHarness):
    backend = "mysql"
    schemes = ("mysql",)
    drivers = ("pymysql", "aiomysql")
    extra = "mysql"
    NOW = "UTC_TIMESTAMP(6)"
    ANALYZE = "ANALYZE TABLE {table}"
    expected_capabilities = msgspec.structs.replace(RELATIONAL, native_async=True)
    append_statements = 3
    one_connection: ClassVar = {"pool_size": "1"}
    impatient: ClassVar = {"lock_timeout": "0.2"}  # whole seconds: 1 s
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
        self.admin = self._connect()

    def close(self) -> None:
        self.admin.close()

    def empty_url(self) -> str:
        name = f"test_{uuid.uuid4().hex}"
        self._run(self.admin, f"CREATE DATABASE {name} CHARACTER SET latin1 COLLATE latin1_swedish_ci")
        return self.server.set(database=name).render_as_string(hide_password=False)

    def fresh_url(self) -> str:
        url = self.empty_url()
        open_repository(url, schema="migrate").close()
        return url

    def drop(self, url: str) -> None:
        self._run(self.admin, f"DROP DATABASE {self._name(url)}")

    def query(self, url: str, statement: str, *values: Any) -> list[Any]:
        self.admin.select_db(self._name(url))
        return self._run(self.admin, statement.replace("?", "%s"), values)

    def time(self, moment: dt.datetime) -> Any:
        return moment.astimezone(dt.UTC).replace(tzinfo=None)

    def rejecting_insert(self, url: str, text: str) -> contextlib.AbstractContextManager[None]:
        trigger = f"""
            CREATE TRIGGER act BEFORE INSERT ON chat_message FOR EACH ROW
            BEGIN
                IF NEW.content = '{text}' THEN
                    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by a trigger';
                END IF;
            END
        """
        return self.within(url, [trigger], ["DROP TRIGGER act"])

    def kill_sessions(self, url: str) -> int:
        found = self._sessions(url)
        for number in found:
            with contextlib.suppress(pymysql.err.OperationalError):  # gone meanwhile
                self._run(self.admin, f"KILL {number}")
        return len(found)

    def count_sessions(self, url: str) -> int:
        return len(self._sessions(url))

    @contextlib.contextmanager
    def locked(self, url: str, conversation_id: str) -> Iterator[None]:
        connection = self._connect(self._name(url), autocommit=False)
        try:
            statement = "SELECT 1 FROM chat_conversation WHERE conversation_id = %s FOR UPDATE"
            assert self._run(connection, statement, (conversation_id,))
            yield
        finally:
            connection.close()

    def server_zone(self, zone: str) -> contextlib.AbstractContextManager[None]:
        return self.server_default("time_zone", zone)

    @contextlib.contextmanager
    def server_default(self, name: str, value: Any) -> Iterator[None]:
        """Within the context, what new sessions begin with."""
        before = self._run(self.admin, f"SELECT @@GLOBAL.{name}")[0][0]
        self._run(self.admin, f"SET GLOBAL {name} = %s", (value,))
        try:
            yield
        finally:
            self._run(self.admin, f"SET GLOBAL {name} = %s", (before,))

    def explain(self, url: str, statement: str) -> str:
        if statement.startswith("INSERT INTO chat_message"):
            return "rows that are given"
        longest = "SELECT conversation_key, conversation_id FROM chat_conversation ORDER BY message_count DESC LIMIT 1"
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
        values: list[Any] = []

        def placed(match: re.Match[str]) -> str:
            values.append(samples.get(match[1], 1))
            return "%s"

        text = re.sub(r":([a-z_]\w*)", placed, statement.replace("%", "%%"))
        plan = self.query(url, f"EXPLAIN {text.replace('?', '%s')}", *values)
        return "\n".join(" | ".join(str(cell) for cell in row) for row in plan)

    def plan_is_bounded(self, plan: str) -> bool:
        # All of a derived table is no more than its limit.
        return not re.search(r"(?<!<derived\d> )\| ALL \||filesort|temporary", plan)

    def _sessions(self, url: str) -> list[int]:
        statement = "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> CONNECTION_ID()"
        return [row[0] for row in self._run(self.admin, statement, (self._name(url),))]

    def _connect(self, database: str | None = None, *, autocommit: bool = True) -> "pymysql.Connection[Any]":
        server = self.server
        return pymysql.connect(
            host=server.host or "localhost",
            port=server.port or 3306,
            user=server.username,
            password=server.password or "",
            database=database,
            autocommit=autocommit,
        )

    def _run(self, connection: "pymysql.Connection[Any]", statement: str, values: Any = None) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def _name(self, url: str) -> str:
        name = str(make_url(url).database)
        assert re.fullmatch(r"test_[0-9a-f]{32}", name), "only namespaces of this harness are touched"
        return name
