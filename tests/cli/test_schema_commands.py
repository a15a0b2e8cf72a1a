"""migrate, status, validate, sql, repair: the words and exit codes; what they do is tested with the migrations."""

import re
import sqlite3
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tables.db"


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite:///{file}"


def change(file: Path, statement: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        connection.execute(statement)
    connection.close()


def test_migrate_prints_each_step_and_does_nothing_the_second_time(run: Run, url: str) -> None:
    first = run("migrate", url=url)
    assert first.code == 0
    assert "V0001__chat_memory.sql applied" in first.out
    second = run("migrate", url=url)
    assert second.code == 0
    assert "nothing to do" in second.out


def test_status_lists_the_steps(run: Run, url: str, file: Path) -> None:
    file.touch()
    pending = run("status", url=url)
    assert pending.code == 0
    assert pending.lines[0] == "0001\tchat memory\t\tpending"
    run("migrate", url=url)
    version, description, when, state = run("status", url=url).lines[0].split("\t")
    assert (version, description, state) == ("0001", "chat memory", "applied")
    assert when[4] == "-"


def test_validate_fails_with_the_next_command_until_migrated(run: Run, url: str, file: Path) -> None:
    file.touch()
    refused = run("validate", url=url)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.count("\n") == 1
    assert "chatkeep migrate" in refused.err
    run("migrate", url=url)
    assert run("validate", url=url).code == 0


def test_an_edited_step_is_seen(run: Run, url: str, file: Path) -> None:
    run("migrate", url=url)
    change(file, "UPDATE chatkeep_schema_history SET checksum = 'other'")
    assert run("status", url=url).lines[0].endswith("edited")
    assert run("validate", url=url).code == 1
    assert run("migrate", url=url).code == 1


def test_sql_prints_what_would_run_and_runs_by_hand(run: Run, url: str, file: Path) -> None:
    file.touch()
    text = run("sql", url=url).out
    assert "CREATE TABLE chat_message" in text
    connection = sqlite3.connect(file)
    connection.executescript(text)
    connection.close()
    assert run("validate", url=url).code == 0
    nothing = run("sql", url=url)
    assert (nothing.code, nothing.out) == (0, "")


@pytest.mark.parametrize(
    "scheme",
    [
        "sqlite:",
        "postgresql:",
        "postgresql://nobody:x@127.0.0.1:1/none",
        "mysql:",
        "mariadb://nobody:x@127.0.0.1:1/none",
    ],
)
def test_sql_of_all_steps_needs_no_database(run: Run, scheme: str, tmp_path: Path) -> None:
    printed = run("sql", "--all", url=scheme)
    assert printed.code == 0
    assert re.search(r"CREATE TABLE (IF NOT EXISTS )?chat_conversation", printed.out)
    assert not list(tmp_path.iterdir())


def test_repair_without_a_failed_step_says_so(run: Run, url: str) -> None:
    run("migrate", url=url)
    done = run("repair", url=url)
    assert done.code == 0
    assert "nothing to repair" in done.out


@pytest.mark.parametrize("completed", [False, True])
def test_repair_settles_a_failed_step(run: Run, url: str, file: Path, completed: bool) -> None:
    run("migrate", url=url)
    change(file, "UPDATE chatkeep_schema_history SET success = 0")
    assert run("status", url=url).lines[0].endswith("failed")
    done = run("repair", *(["--completed"] if completed else []), url=url)
    assert done.code == 0
    assert ("counts as applied by hand" if completed else "will run again") in done.out
    assert not run("status", url=url).lines[0].endswith("\tfailed") or not completed


@pytest.mark.parametrize("command", ["migrate", "status", "validate", "sql", "repair"])
def test_a_backend_without_a_schema_has_nothing_to_do(run: Run, command: str) -> None:
    done = run(command, url="inprocess:")
    assert (done.code, done.out) == (0, "")
    assert "has no schema" in done.err


@pytest.mark.parametrize("bad", ["soon", "0", "-1s"])
def test_a_lock_time_out_that_is_none_is_a_usage_error(run: Run, url: str, bad: str) -> None:
    refused = run("migrate", "--lock-timeout", bad, url=url)
    assert refused.code == 2
    assert "--lock-timeout" in refused.err


READING = [
    ["status"],
    ["validate"],
    ["sql"],
    ["repair"],
    ["ls"],
    ["show", "t"],
    ["export"],
    ["delete", "t", "--yes"],
    ["purge", "--expired"],
    ["doctor"],
]


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_command_that_reads_never_creates_a_database_file(run: Run, url: str, file: Path, command: list[str]) -> None:
    refused = run(*command, url=url)
    assert refused.code == 2
    assert "no database file" in refused.err
    assert "chatkeep migrate" in refused.err
    assert not file.exists()
