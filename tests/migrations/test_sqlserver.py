"""What is SQL Server's own in its migrations: batches, transactions that files end, the lock, row versions."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatkeep.errors import Outcome, SchemaError, StorageTimeoutError
from chatkeep.migrations.files import SchemaFile, schema_directory, schema_files
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, pending_sql, status, validate
from chatkeep.migrations.target import Target
from tests.conformance.sqlserver_harness import SqlserverHarness
from tests.migrations.places import target_of

pytestmark = pytest.mark.sqlserver


class Database:
    """An empty database and a folder with the shipped steps, to which a test adds its own."""

    def __init__(self, harness: SqlserverHarness, directory: Path) -> None:
        self.harness = harness
        self.url = harness.empty_url()
        self.directory = directory
        shutil.copytree(str(schema_directory("sqlserver")), directory)

    def target(self) -> contextlib.AbstractContextManager[Target]:
        return target_of(self.url)

    def files(self) -> list[SchemaFile]:
        return schema_files("sqlserver", self.directory)

    def add(self, script: str, *, row: bool = True) -> str:
        """The next step, its name."""
        version = len(self.files()) + 1
        path = self.directory / f"V{version:04d}__step.sql"
        own = (
            "INSERT INTO chatkeep_schema_history (version, description, checksum, applied_at, success)\n"
            f"VALUES ({version}, 'step', NULL, SYSUTCDATETIME(), 1);\n"
        )
        path.write_text(f"{script}\n{own if row else ''}", encoding="utf-8")
        return path.name

    def tables(self) -> set[str]:
        rows = self.harness.query(self.url, "SELECT name FROM sys.tables WHERE schema_id = SCHEMA_ID()")
        return {row[0] for row in rows} - {"chatkeep_schema_history", "chat_conversation", "chat_message"}


@pytest.fixture(scope="module")
def harness() -> Iterator[SqlserverHarness]:
    made = SqlserverHarness()
    yield made
    made.close()


@pytest.fixture
def database(harness: SqlserverHarness, tmp_path: Path) -> Iterator[Database]:
    made = Database(harness, tmp_path / "steps")
    yield made
    harness.drop(made.url)


def test_the_batches_of_a_file_run_one_after_another(database: Database) -> None:
    text = "100% :a; ? %s %(a)s ''quoted'' -- no comment"
    database.add(
        f"CREATE TABLE odd (x NVARCHAR(100));\nGO\n-- a comment; ' quote\nINSERT INTO odd VALUES (N'{text}');\n"
        "/* ;\nGO\n*/\ngo -- here\nCREATE VIEW odd_texts AS SELECT x FROM odd\nGO"
    )
    with database.target() as target:
        migrate(target, database.files())
        assert [step.state for step in status(target, database.files())] == [State.APPLIED] * 2
    assert database.harness.query(database.url, "SELECT x FROM odd_texts") == [(text.replace("''", "'"),)]


def test_a_failing_batch_undoes_the_whole_file_and_names_its_line(database: Database) -> None:
    name = database.add("CREATE TABLE half (x INT);\nGO\n\nINSERT INTO nowhere VALUES (1);")
    with database.target() as target:
        with pytest.raises(SchemaError) as caught:
            migrate(target, database.files())
        assert f"step {name} failed: line 4, 'INSERT INTO nowhere VALUES (1);'" in str(caught.value)
        assert "It was rolled back and left nothing behind" in str(caught.value)
        assert database.tables() == set()
        path = database.directory / name
        path.write_text(path.read_text().replace("INSERT INTO nowhere VALUES (1);", ""))
        assert migrate(target, database.files()).applied == (name,)


@pytest.mark.parametrize("end", ["COMMIT TRANSACTION;", "COMMIT TRANSACTION;\nBEGIN TRANSACTION;", "COMMIT;\nGO"])
def test_a_file_that_ends_its_transaction_is_found_out(database: Database, end: str) -> None:
    database.add(f"CREATE TABLE half (x INT);\n{end}")
    with database.target() as target, pytest.raises(SchemaError, match="must hold no BEGIN, COMMIT or") as caught:
        migrate(target, database.files())
    assert caught.value.outcome is Outcome.UNKNOWN
    assert database.tables() == {"half"}


def test_a_file_without_its_history_row_is_found_out(database: Database) -> None:
    database.add("CREATE TABLE half (x INT);", row=False)
    with database.target() as target, pytest.raises(SchemaError, match="does not end by inserting row 2"):
        migrate(target, database.files())
    assert database.tables() == set()


def test_a_count_behind_go_is_refused(database: Database) -> None:
    database.add("CREATE TABLE half (x INT);\nGO 3")
    with database.target() as target, pytest.raises(SchemaError, match="line 2: behind GO stands '3'"):
        migrate(target, database.files())
    assert database.tables() == set()


def test_a_lock_that_others_hold_is_waited_for_only_so_long(database: Database) -> None:
    with database.target() as holder, database.target() as target:
        with holder.lock(5), pytest.raises(StorageTimeoutError, match="another migration holds the lock"):
            migrate(target, database.files(), lock_timeout=0.5)
        assert migrate(target, database.files(), lock_timeout=0.5).applied == ("V0001__chat_memory.sql",)


def test_the_session_s_time_out_is_as_before_after_a_migration(database: Database) -> None:
    with database.target() as target:
        migrate(target, database.files(), lock_timeout=3)
        with target._session() as session:  # type: ignore[attr-defined]
            assert session.row("SELECT @@LOCK_TIMEOUT")[0] == 10_000


def test_the_printed_sql_is_applied_by_hand(database: Database) -> None:
    with database.target() as target:
        text = pending_sql(target, database.files())
        assert "BEGIN TRANSACTION;" in text
        for batch in re.split(r"(?m)^GO$", text):
            database.harness.query(database.url, batch)
        validate(target, database.files())
        assert [step.state for step in status(target, database.files())] == [State.BY_HAND]


def test_a_database_without_row_versions_is_refused_with_the_statement_that_turns_them_on(database: Database) -> None:
    name = database.harness._name(database.url)
    database.harness._run(database.harness.admin, "USE master")
    database.harness._run(
        database.harness.admin, f"ALTER DATABASE {name} SET READ_COMMITTED_SNAPSHOT OFF WITH ROLLBACK IMMEDIATE"
    )
    with database.target() as target:
        with pytest.raises(SchemaError, match="READ_COMMITTED_SNAPSHOT OFF") as caught:
            validate(target, database.files())
    statement = str(caught.value).partition("database: ")[2]
    assert statement.startswith(f"ALTER DATABASE [{name}] SET READ_COMMITTED_SNAPSHOT ON")
    database.harness._run(database.harness.admin, statement)
    with database.target() as target:
        assert migrate(target, database.files()).applied == ("V0001__chat_memory.sql",)
