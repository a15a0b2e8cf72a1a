"""What only SQLite can get wrong: databases in memory, statements to be told apart, other writers."""

import sqlite3
import threading
from pathlib import Path

import pytest

from chatkeep import Message, open_async_repository, open_repository
from chatkeep.backends.relational.sqlite_migration import sqlite_statements
from chatkeep.errors import SchemaError
from chatkeep.migrations.runner import migrate, validate
from tests.migrations.places import SqlitePlace, Steps

pytestmark = pytest.mark.sqlite


def test_a_database_in_memory_has_its_tables_on_the_repository_s_own_connection() -> None:
    with open_repository("sqlite://") as repository:
        repository.append("a", [Message.user("hello")])
        assert repository.count_messages("a") == 1


@pytest.mark.asyncio
async def test_a_database_in_memory_works_asynchronously() -> None:
    async with await open_async_repository("sqlite:///:memory:") as repository:
        await repository.append("a", [Message.user("hello")])
        assert await repository.count_messages("a") == 1


def test_threads_that_open_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    for round_ in range(5):
        url = f"sqlite:///{tmp_path / f'{round_}.db'}"
        start = threading.Barrier(8)
        errors: list[BaseException] = []

        def work(url: str = url, start: threading.Barrier = start, errors: list[BaseException] = errors) -> None:
            try:
                start.wait()
                with open_repository(url) as repository:
                    repository.append("a", [Message.user("hello")])
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        with open_repository(url) as repository:
            assert repository.count_messages("a") == 8


def test_a_long_write_of_others_is_waited_for(sqlite: SqlitePlace) -> None:
    other = sqlite3.connect(sqlite.path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(1.0, lambda: other.execute("COMMIT"))
    timer.start()
    with sqlite.target(busy_timeout="100ms") as target:
        assert migrate(target, lock_timeout=20).applied
    timer.join()
    other.close()


def test_the_busy_timeout_is_put_back(sqlite: SqlitePlace) -> None:
    with sqlite.target(busy_timeout="1234ms") as target:
        migrate(target, lock_timeout=50)
        with target._database.session() as session:  # type: ignore[attr-defined]
            assert session.row("PRAGMA busy_timeout")[0] == 1234


def test_a_trigger_is_one_statement(sqlite: SqlitePlace, tmp_path: Path) -> None:
    steps = Steps(sqlite, tmp_path / "steps")
    steps.add(
        "trigger",
        "CREATE TABLE log (x text);\nCREATE TRIGGER watch AFTER DELETE ON chat_message BEGIN\n"
        "    INSERT INTO log VALUES (old.role || ';');\n    INSERT INTO log VALUES ('END;');\nEND;",
    )
    with sqlite.target() as target:
        migrate(target, steps.files())
        validate(target, steps.files())


def test_statements_are_told_apart_and_keep_their_lines() -> None:
    script = (
        "-- one; two\n\nCREATE TABLE a (x text); INSERT INTO a VALUES (';');\n/* ;\n */ -- more\n"
        "INSERT INTO a VALUES ('it''s; -- no');\n"
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1;\nSELECT 2; END;\n-- end"
    )
    assert [(line, text.split()[0], text.count(";")) for line, text in sqlite_statements(script)] == [
        (3, "CREATE", 1),
        (3, "INSERT", 2),
        (6, "INSERT", 2),
        (7, "CREATE", 3),
    ]


def test_a_statement_without_its_semicolon_is_run_too() -> None:
    assert list(sqlite_statements("SELECT 1;\nSELECT 2")) == [(1, "SELECT 1;"), (2, "SELECT 2")]


def test_too_old_a_sqlite_is_refused(sqlite: SqlitePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with sqlite.target() as target, pytest.raises(SchemaError, match=r"chatkeep needs 3\.35 or newer"):
        migrate(target)
