"""An empty database for one test, with raw access beside chatkeep's, and folders of steps to migrate it with.

SQLite's and PostgreSQL's are here, those of MySQL and MariaDB in mysql_places.py.
"""

import contextlib
import datetime as dt
import shutil
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from chatkeep.config import load_settings
from chatkeep.migrations.files import SchemaFile, schema_directory, schema_files
from chatkeep.migrations.target import Target

ROOT = Path(__file__).resolve().parents[2]
ROLL_BACK = ("sqlite", "postgresql")
"""Where a step that fails leaves nothing behind."""
COMMIT = ("mysql", "mariadb")
"""Where each statement of a step commits by itself."""
BACKENDS = (*ROLL_BACK, *COMMIT)
HISTORY = "SELECT version, description, checksum, applied_at, success FROM chatkeep_schema_history ORDER BY version"


def each(backends: tuple[str, ...]) -> list[Any]:
    """The parameters of a fixture or test that takes these backends in turn."""
    return [pytest.param(name, marks=getattr(pytest.mark, name)) for name in backends]


rolls_back = pytest.mark.parametrize("place", each(ROLL_BACK), indirect=True)
commits = pytest.mark.parametrize("place", each(COMMIT), indirect=True)


@contextlib.contextmanager
def target_of(url: str, *, vectors: bool = False, **options: Any) -> Iterator[Target]:
    """The migration target of a URL, as the package's own commands get it; `vectors`: of its optional tables."""
    settings = load_settings(url, options, asynchronous=False)
    make = settings.plugin.vector_migrations if vectors else settings.plugin.migrations
    assert make is not None
    target = make(settings.request, None)
    try:
        yield target
    finally:
        target.close()


class Place:
    """What the tests of all engines need. Statements go round chatkeep, so that it can't vouch for itself."""

    backend: str
    url: str
    slow_statement: str
    """Takes half a minute where nobody stops it."""
    true, false = "TRUE", "FALSE"
    now = "now()"
    history_end = ""
    """Ends the statement that a step fills its history row in with."""

    def target(self, **options: Any) -> contextlib.AbstractContextManager[Target]:
        return target_of(self.url, **options)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def execute(self, script: str) -> None:
        """Any number of statements."""
        raise NotImplementedError

    def apply_by_hand(self, path: Path) -> None:
        """As a person would, without chatkeep; fails where a statement does."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """Tables, columns, constraints and indexes as the engine describes them."""
        raise NotImplementedError

    def history(self) -> list[tuple[Any, ...]]:
        return self.rows(HISTORY)

    def history_row(self, version: int, description: str) -> str:
        """How a step ends."""
        return (
            "INSERT INTO chatkeep_schema_history (version, description, checksum, applied_at, success)\n"
            f"VALUES ({version}, '{description}', NULL, {self.now}, {self.true}){self.history_end};"
        )


class SqlitePlace(Place):
    backend = "sqlite"
    true, false = "1", "0"
    now = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
    slow_statement = (
        "CREATE TABLE slow AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000000) "
        "SELECT count(*) FROM c;"
    )

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(statement).fetchall()

    def execute(self, script: str) -> None:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(script)

    def apply_by_hand(self, path: Path) -> None:
        self.execute(path.read_text(encoding="utf-8"))

    def schema(self) -> dict[str, Any]:
        return {
            name: " ".join("\n".join(line.partition("--")[0] for line in text.splitlines()).split())
            for name, text in self.rows(
                "SELECT type || ' ' || name, COALESCE(sql, '') FROM sqlite_master "
                "WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY 1"
            )
        }


class PostgresqlPlace(Place):
    backend = "postgresql"
    slow_statement = "SELECT pg_sleep(30);"

    def __init__(self, server: str) -> None:
        self.server = server
        self.schema_name = f"test_migrations_{uuid.uuid4().hex[:12]}"
        self.url = make_url(server).update_query_dict({"search_path": self.schema_name}).render_as_string(False)
        self._in_schema(f"CREATE SCHEMA {self.schema_name}")

    def drop(self) -> None:
        self._in_schema(f"DROP SCHEMA {self.schema_name} CASCADE")

    def connect(self, **parameters: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(
            make_url(self.server).set(drivername="postgresql").render_as_string(False),
            autocommit=True,
            options=f"-c search_path={self.schema_name} -c timezone=UTC -c client_min_messages=warning",
            **parameters,
        )

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            return connection.execute(statement).fetchall()

    def execute(self, script: str) -> None:
        self._in_schema(script)

    def _in_schema(self, script: str) -> None:
        with self.connect() as connection:
            connection.execute(script)

    def psql(self, *arguments: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        url = make_url(self.server)
        options = f"-c search_path={self.schema_name}"
        environment = {"PGPASSWORD": str(url.password), "PGOPTIONS": options, "PATH": "/usr/bin:/bin"}
        address = url.set(drivername="postgresql")._replace(password=None).render_as_string(False)
        command = [str(shutil.which("psql")), "--no-psqlrc", "--quiet", "--dbname", address, *arguments]
        return subprocess.run(command, env=environment, input=text, capture_output=True, text=True, timeout=60)

    def apply_by_hand(self, path: Path) -> None:
        done = self.psql("--set", "ON_ERROR_STOP=1", "--single-transaction", "--file", str(path))
        assert done.returncode == 0, done.stderr

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for table, *column in self.rows(
            "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name, is_identity "
            "FROM information_schema.columns WHERE table_schema = current_schema() "
            "ORDER BY table_name, ordinal_position"
        ):
            found.setdefault(f"table {table}", []).append(column)
        for table, name, definition in self.rows(
            "SELECT r.relname, c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c "
            "JOIN pg_class r ON r.oid = c.conrelid "
            # NOT NULL became a constraint of its own in version 18; information_schema has told it already.
            "WHERE c.connamespace = current_schema()::regnamespace AND c.contype <> 'n' ORDER BY 1, 2"
        ):
            found[f"constraint {table}.{name}"] = definition
        for name, definition in self.rows(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1"
        ):
            found[f"index {name}"] = definition.replace(f"{self.schema_name}.", "")
        return found


class Steps:
    """A folder with the shipped files of a backend and more of the test's own."""

    def __init__(self, place: Place, directory: Path) -> None:
        self.place = place
        self.directory = directory
        directory.mkdir()
        for entry in schema_directory(place.backend).iterdir():
            if entry.name.startswith("V"):
                (directory / entry.name).write_bytes(entry.read_bytes())
        self.shipped = len(self.files())

    def files(self) -> list[SchemaFile]:
        return schema_files(self.place.backend, self.directory)

    def add(self, description: str, script: str) -> Path:
        """The next step, which ends with its own history row as every step must."""
        version = len(self.files()) + 1
        path = self.directory / f"V{version:04d}__{description.replace(' ', '_')}.sql"
        path.write_text(f"{script}\n{self.place.history_row(version, description)}\n", encoding="utf-8")
        return path


MIGRATOR = """
import sys, time
from pathlib import Path
from chatkeep.config import load_settings
from chatkeep.migrations.files import schema_files
from chatkeep.migrations.runner import migrate

url, directory, begin = sys.argv[1:]
settings = load_settings(url, {}, asynchronous=False)
target = settings.plugin.migrations(settings.request, None)
files = schema_files(target.backend, Path(directory))
print("ready", flush=True)
time.sleep(max(float(begin) - time.time(), 0))
report = migrate(target, files, progress=lambda text: print(text, flush=True))
print("applied:", ",".join(report.applied), flush=True)
target.close()
"""


def start_migrator(place: Place, steps: Steps, begin: float = 0.0) -> "subprocess.Popen[str]":
    """A process of its own that migrates, printing its progress; it waits for the time `begin`."""
    return subprocess.Popen(
        [sys.executable, "-c", MIGRATOR, place.url, str(steps.directory), str(begin)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def as_moment(value: Any) -> dt.datetime:
    """A time of the history; one without a zone is in UTC."""
    moment: dt.datetime = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
