"""A DBA applies the files with the engine's own tool; chatkeep recognises it and goes on from there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from chatkeep import Message, open_repository
from chatkeep.errors import SchemaError
from chatkeep.migrations.files import schema_directory, schema_files
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, pending_sql, status, validate
from tests.migrations.mysql_places import MysqlPlace
from tests.migrations.places import Place, PostgresqlPlace, SqlitePlace, Steps, commits, rolls_back
from tests.services import skip_or_fail


@pytest.fixture(autouse=True)
def _tools(request: pytest.FixtureRequest) -> None:
    if "postgresql" in request.node.name and shutil.which("psql") is None:
        skip_or_fail("postgresql", "there is no psql command")


def shipped(backend: str) -> list[Path]:
    directory = Path(str(schema_directory(backend)))
    return [directory / file.name for file in schema_files(backend)]


def test_the_shipped_files_applied_by_hand_are_enough(place: Place) -> None:
    for path in shipped(place.backend):
        place.apply_by_hand(path)
    with place.target() as target:
        validate(target)
        assert [step.state for step in status(target)] == [State.BY_HAND] * len(shipped(place.backend))
        assert migrate(target).applied == ()
    assert {checksum for _, _, checksum, _, _ in place.history()} == {None}
    with open_repository(place.url, schema="validate") as repository:
        repository.append("a", [Message.user("hello")])
        assert [message.text for message in repository.find_by_conversation_id("a")] == ["hello"]


def test_both_ways_make_the_same_tables(place: Place) -> None:
    for path in shipped(place.backend):
        place.apply_by_hand(path)
    by_hand = place.schema()
    place.execute("DROP TABLE chat_message; DROP TABLE chat_conversation; DROP TABLE chatkeep_schema_history;")
    with place.target() as target:
        migrate(target)
    assert place.schema() == by_hand


def test_chatkeep_goes_on_from_where_the_hand_stopped(place: Place, steps: Steps) -> None:
    for file in steps.files():
        place.apply_by_hand(steps.directory / file.name)
    second = steps.add("second", "CREATE TABLE second (x integer);")
    with place.target() as target:
        assert migrate(target, steps.files()).applied == (second.name,)
        found = [step.state for step in status(target, steps.files())]
    assert found == [State.BY_HAND] * steps.shipped + [State.APPLIED]


def test_the_hand_may_go_on_from_where_chatkeep_stopped(place: Place, steps: Steps) -> None:
    with place.target() as target:
        migrate(target, steps.files())
        place.apply_by_hand(steps.add("second", "CREATE TABLE second (x integer);"))
        validate(target, steps.files())


def test_a_file_of_which_half_arrived_is_found_out(place: Place) -> None:
    """As by a tool that goes on after an error: the history row at the end is there, a table is not."""
    for path in shipped(place.backend):
        place.apply_by_hand(path)
    place.execute("DROP TABLE chat_message;")
    with place.target() as target:
        for call in (validate, migrate):
            with pytest.raises(SchemaError, match="not all of them arrived: there is no chat_message"):
                call(target)


@rolls_back
def test_a_file_that_stopped_before_its_end_is_found_out(place: Place, tmp_path: Path) -> None:
    """As by a tool outside of a transaction that stops at an error: the history table is there, the row is not."""
    for path in shipped(place.backend):
        place.apply_by_hand(path)
    place.execute("DROP TABLE chat_message; DELETE FROM chatkeep_schema_history;")
    with place.target() as target:
        for call in (validate, migrate):
            with pytest.raises(SchemaError, match=r"V0001__chat_memory\.sql began and did not end; it was applied"):
                call(target)


@commits
def test_a_file_may_be_applied_by_hand_over_and_over(place: Place) -> None:
    """And so goes on where it stopped before its end, or where the shell was told to go on after errors."""
    for path in shipped(place.backend):
        place.apply_by_hand(path)
        before = (place.schema(), place.history())
        place.apply_by_hand(path)
        assert (place.schema(), place.history()) == before
        place.execute("DROP TABLE chat_message; DELETE FROM chatkeep_schema_history;")
        place.apply_by_hand(path)
        assert place.schema() == before[0]
    with place.target() as target:
        validate(target)


@commits
def test_the_printed_sql_goes_through_the_engines_shell(place: Place) -> None:
    assert isinstance(place, MysqlPlace)
    with place.target() as target:
        done = place.shell(text=pending_sql(target))
        if done is None:
            skip_or_fail(place.backend, "there is no mysql or mariadb command, and no container with one")
        assert (done.returncode, done.stdout, "ERROR" in done.stderr) == (0, "", False)
        validate(target)


def test_the_printed_sql_goes_through_psql(postgresql: PostgresqlPlace) -> None:
    with postgresql.target() as target:
        text = pending_sql(target)
        done = postgresql.psql("--set", "ON_ERROR_STOP=1", text=text)
        assert (done.returncode, done.stderr) == (0, "")
        validate(target)


def test_the_printed_sql_goes_through_the_sqlite3_command(sqlite: SqlitePlace) -> None:
    command = shutil.which("sqlite3")
    if command is None:
        skip_or_fail("sqlite", "there is no sqlite3 command")
    with sqlite.target() as target:
        text = pending_sql(target)
        done = subprocess.run(
            [command, "-bail", str(sqlite.path)], input=text, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        validate(target)
