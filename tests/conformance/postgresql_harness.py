"""The harness of PostgreSQL: a schema for each namespace, in the database that tests/services.py hands out."""

import contextlib
import re
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from chatkeep import open_repository
from chatkeep.migrations.runner import migrate
from tests import services
from tests.conformance.relational_harness import RELATIONAL, ServerHarness
from tests.migrations.places import target_of
from tests.servers import plain

RAISE = "RAISE EXCEPTION 'refused by a trigger'"
DIE_ONCE = "IF nextval('once') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF"


class PostgresqlHarness(ServerHarness):
    backend = "postgresql"
    schemes = ("postgresql", "postgres")
    drivers = ("psycopg",)
    extra = "postgresql"
    expected_capabilities = msgspec.structs.replace(RELATIONAL, native_async=True, vectors=True)
    append_statements = 2
    one_connection: ClassVar = {"pool_size": "1"}
    impatient: ClassVar = {"lock_timeout": "0.2"}
    cannot: ClassVar = {"clock": "the clock is the server's own"}

    def __init__(self) -> None:
        service = services.service_url(self.backend)
        if service.url is None:
            services.skip_or_fail(self.backend, service.reason or "no reason given")
        self.server = make_url(service.url)
        self.admin = psycopg.connect(service.url, autocommit=True)
        if not self._has_pgvector():
            self.cannot = {**type(self).cannot, "vector_options": "the server has no pgvector"}

    def close(self) -> None:
        self.admin.close()

    def empty_url(self) -> str:
        name = f"test_{uuid.uuid4().hex}"
        self.admin.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        # The application's name tells the sessions of one namespace from others of the same server.
        url = self.server.update_query_dict({"search_path": name, "application_name": name})
        return url.render_as_string(hide_password=False)

    def fresh_url(self) -> str:
        url = self.empty_url()
        open_repository(url, schema="migrate").close()
        if "vector_options" not in self.cannot:
            with target_of(url, vectors=True) as target:
                migrate(target)
        return url

    def drop(self, url: str) -> None:
        self.admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self._schema(url))))

    def query(self, url: str, statement: str, *values: Any) -> list[Any]:
        with self.admin.transaction():
            self._enter(self.admin, url)
            cursor = self.admin.execute(statement.replace("?", "%s"), values or None)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def rejecting_insert(self, url: str, text: str) -> contextlib.AbstractContextManager[None]:
        return self._trigger(url, text, "BEFORE INSERT", RAISE)

    def rejecting_commit(self, url: str, text: str) -> contextlib.AbstractContextManager[None]:
        return self._trigger(url, text, "AFTER INSERT", RAISE)

    def dying_at_commit(self, url: str, text: str) -> contextlib.AbstractContextManager[None]:
        return self._trigger(url, text, "AFTER INSERT", DIE_ONCE)

    def kill_sessions(self, url: str) -> int:
        found = self.admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s",
            [self._schema(url)],
        )
        return len(found.fetchall())

    def count_sessions(self, url: str) -> int:
        found = self.admin.execute(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = %s", [self._schema(url)]
        )
        return int(found.fetchall()[0][0])

    @contextlib.contextmanager
    def locked(self, url: str, conversation_id: str) -> Iterator[None]:
        with psycopg.connect(plain(self.server)) as connection:
            self._enter(connection, url)
            statement = "SELECT 1 FROM chat_conversation WHERE conversation_id = %s FOR UPDATE"
            assert connection.execute(statement, [conversation_id]).fetchone()
            yield
            connection.rollback()

    @contextlib.contextmanager
    def server_zone(self, zone: str) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            # libpq asks the server for both in every new session.
            patch.setenv("PGTZ", zone)
            patch.setenv("PGDATESTYLE", "German, DMY")
            yield

    def explain(self, url: str, statement: str) -> str:
        names = dict.fromkeys(re.findall(r"%\((\w+)\)s", statement))
        for number, name in enumerate(names, 1):
            statement = statement.replace(f"%({name})s", f"${number}")
        rows = self.query(url, f"EXPLAIN (GENERIC_PLAN) {statement.replace('%%', '%')}")
        return "\n".join(row[0] for row in rows)

    def plan_is_bounded(self, plan: str) -> bool:
        return not re.search(r"Seq Scan on chat_|Sort", plan)

    def fill(self, url: str, conversation_id: str, messages: int, conversations: int = 0) -> None:
        self.query(
            url,
            "WITH head AS (UPDATE chat_conversation SET last_position = last_position + %(n)s, "
            "message_count = message_count + %(n)s WHERE conversation_id = %(id)s "
            "RETURNING conversation_key, last_position - %(n)s AS base) "
            "INSERT INTO chat_message (conversation_key, position, message_id, role, content, created_at) "
            "SELECT conversation_key, base + n, 'filling-' || n, 'user', 'filling', now() "
            "FROM head, generate_series(1, %(n)s) n".replace("%(n)s", str(messages)).replace("%(id)s", "?"),
            conversation_id,
        )
        self.query(
            url,
            "INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at) "
            f"SELECT '', 'filling-' || n, now(), now() FROM generate_series(1, {conversations}) n",
        )
        for table in ("chat_message", "chat_conversation"):
            self.query(url, f"ANALYZE {table}")

    def _trigger(self, url: str, text: str, event: str, body: str) -> contextlib.AbstractContextManager[None]:
        constraint, deferred = (
            ("CONSTRAINT", "DEFERRABLE INITIALLY DEFERRED") if event.startswith("AFTER") else ("", "")
        )
        create = [
            "CREATE SEQUENCE once",
            f"CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN NEW; END $$",
            f"CREATE {constraint} TRIGGER act {event} ON chat_message {deferred} FOR EACH ROW "
            f"WHEN (NEW.content = '{text}') EXECUTE FUNCTION act()",
        ]
        return self.within(url, create, ["DROP FUNCTION act CASCADE", "DROP SEQUENCE once"])

    def _has_pgvector(self) -> bool:
        """Whether the server has it; then it is put where all namespaces share it, and none drops it with itself."""
        if not self.admin.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone():
            return False
        with self.admin.transaction():
            self.admin.execute("SELECT pg_advisory_xact_lock(20250101)")
            self.admin.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        return True

    def _enter(self, connection: psycopg.Connection[Any], url: str) -> None:
        connection.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(self._schema(url))))

    def _schema(self, url: str) -> str:
        name = str(make_url(url).query["search_path"])
        assert re.fullmatch(r"test_[0-9a-f]{32}", name), "only namespaces of this harness are touched"
        return name
