"""The harness of SQLite: a file for each namespace, in a folder that is gone afterwards."""

import contextlib
import datetime as dt
import re
import sqlite3
import tempfile
import types
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from chatkeep import open_repository
from chatkeep.backends.relational import sqlite
from tests import services
from tests.conformance.relational_harness import RELATIONAL, RelationalHarness

NO_SERVER = "there is no server, and so no session"


class SqliteHarness(RelationalHarness):
    backend = "sqlite"
    schemes = ("sqlite",)
    extra = "sqlite"
    expected_capabilities = msgspec.structs.replace(RELATIONAL, vectors=True)
    append_statements = 4
    one_connection: ClassVar = {"pool_size": "1"}
    impatient: ClassVar = {"busy_timeout": "0.2"}
    cannot: ClassVar = {
        "rejecting_commit": "what is checked at the commit needs foreign_keys, which chatkeep leaves off",
        "dying_at_commit": NO_SERVER,
        "losing_reply": NO_SERVER,
        "kill_sessions": NO_SERVER,
        "count_sessions": NO_SERVER,
        "server_zone": NO_SERVER,
        "unreachable_url": NO_SERVER,
    }

    def __init__(self) -> None:
        services.service_url(self.backend)  # so that the report of the run names it
        self.folder = tempfile.TemporaryDirectory(prefix="chatkeep-")

    def close(self) -> None:
        self.folder.cleanup()

    def empty_url(self) -> str:
        # No test cuts the power, and a sync with each commit would take two thirds of the suite's time.
        return f"sqlite:///{self.folder.name}/test_{uuid.uuid4().hex}.db?synchronous=off"

    def fresh_url(self) -> str:
        url = self.empty_url()
        open_repository(url, schema="migrate").close()
        return url

    def vector_options(self) -> dict[str, Any]:
        # sqlite-vec itself: tests/vectors/test_sqlite_vec.py, on a Python that can load it.
        return {} if hasattr(sqlite3.Connection, "enable_load_extension") else {"distance": "numpy"}

    def drop(self, url: str) -> None:
        file = self._file(url)
        assert file.name.startswith("test_"), "only namespaces of this harness are dropped"
        for suffix in ("", "-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)

    def query(self, url: str, statement: str, *values: Any) -> list[Any]:
        with contextlib.closing(self._connect(url)) as connection:
            return connection.execute(statement, values).fetchall()

    def time(self, moment: dt.datetime) -> Any:
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def rejecting_insert(self, url: str, text: str) -> contextlib.AbstractContextManager[None]:
        trigger = f"""
            CREATE TRIGGER reject BEFORE INSERT ON chat_message WHEN NEW.content = '{text}'
            BEGIN SELECT RAISE(ABORT, 'refused by a trigger'); END
        """
        return self.within(url, [trigger], ["DROP TRIGGER reject"])

    @contextlib.contextmanager
    def locked(self, url: str, conversation_id: str) -> Iterator[None]:
        with contextlib.closing(self._connect(url)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def clock(self, moment: dt.datetime) -> Iterator[None]:
        standing = types.SimpleNamespace(now=lambda zone: moment, fromisoformat=dt.datetime.fromisoformat)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite, "dt", types.SimpleNamespace(datetime=standing, UTC=dt.UTC))
            yield

    def explain(self, url: str, statement: str) -> str:
        values = dict.fromkeys(re.findall(r":([a-z_]\w*)", statement))
        with contextlib.closing(self._connect(url)) as connection:
            connection.create_function("chatkeep_now", 0, str)
            rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        return "\n".join(row[3] for row in rows)

    def plan_is_bounded(self, plan: str) -> bool:
        return not re.search(r"SCAN (chat_|[mc]\b)|TEMP B-TREE", plan)

    def fill(self, url: str, conversation_id: str, messages: int, conversations: int = 0) -> None:
        with contextlib.closing(self._connect(url)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            ((key, last),) = connection.execute(
                "SELECT conversation_key, last_position FROM chat_conversation WHERE conversation_id = ?",
                (conversation_id,),
            )
            now = self.time(dt.datetime.now(dt.UTC))
            connection.executemany(
                "INSERT INTO chat_message (conversation_key, position, message_id, role, content, created_at) "
                "VALUES (?, ?, ?, 'user', 'filling', ?)",
                ((key, last + n, f"filling-{n}", now) for n in range(1, messages + 1)),
            )
            connection.execute(
                "UPDATE chat_conversation SET last_position = last_position + ?, message_count = message_count + ? "
                "WHERE conversation_key = ?",
                (messages, messages, key),
            )
            connection.executemany(
                "INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at) VALUES ('', ?, ?, ?)",
                ((f"filling-{n}", now, now) for n in range(conversations)),
            )
            connection.execute("COMMIT")
            connection.execute("ANALYZE")

    def _file(self, url: str) -> Path:
        return Path(url.removeprefix("sqlite:///").partition("?")[0])

    def _connect(self, url: str) -> sqlite3.Connection:
        return sqlite3.connect(self._file(url), timeout=30, isolation_level=None)
