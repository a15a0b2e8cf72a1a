"""Migrating real databases: from empty to latest, again, after failures, and over what must not be run over."""

import datetime as dt

import pytest

from chatkeep import Message, open_async_repository, open_repository
from chatkeep.errors import SchemaError, StorageTimeoutError
from chatkeep.migrations.files import latest_version
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, pending_sql, repair, status, validate
from tests.migrations.places import Place, Steps, as_moment, commits, rolls_back


def states(place: Place, steps: Steps | None = None) -> list[State]:
    with place.target() as target:
        return [step.state for step in status(target, steps.files() if steps else None)]


def test_an_empty_database_becomes_the_latest_version(place: Place) -> None:
    said: list[str] = []
    with place.target() as target:
        report = migrate(target, progress=said.append)
        validate(target)
    assert (report.version_before, report.version) == (0, latest_version(place.backend))
    assert report.applied[0] == "V0001__chat_memory.sql"
    assert any(line.startswith("V0001__chat_memory.sql applied in") for line in said)
    assert states(place) == [State.APPLIED] * report.version
    for version, description, checksum, applied_at, success in place.history():
        assert (len(checksum), bool(success), description != "", version > 0) == (64, True, True, True)
        # UTC, whatever the zones of server and session are.
        assert abs(dt.datetime.now(dt.UTC) - as_moment(applied_at)) < dt.timedelta(minutes=2)


def test_migrating_twice_changes_nothing(place: Place) -> None:
    with place.target() as target:
        migrate(target)
        before = (place.schema(), place.history())
        report = migrate(target)
    assert report.applied == ()
    assert (place.schema(), place.history()) == before


def test_a_database_with_nothing_to_do_is_only_read(place: Place) -> None:
    with place.target() as target:
        migrate(target)
        target.lock = None  # type: ignore[assignment, method-assign]
        assert migrate(target).applied == ()


def test_one_step_at_a_time_to_a_later_version(place: Place, steps: Steps) -> None:
    with place.target() as target:
        migrate(target, steps.files())
    steps.add("second", "CREATE TABLE second (x integer);")
    steps.add("third", "ALTER TABLE second ADD COLUMN y integer;")
    with place.target() as target:
        with pytest.raises(SchemaError, match=r"to apply: V000\d__second\.sql, V000\d__third\.sql"):
            validate(target, steps.files())
        report = migrate(target, steps.files())
        validate(target, steps.files())
    assert [name[7:] for name in report.applied] == ["second.sql", "third.sql"]
    assert place.rows("SELECT x, y FROM second") == []


def test_percent_signs_colons_quotes_and_semicolons_reach_the_engine_as_they_are(place: Place, steps: Steps) -> None:
    steps.add(
        "odd texts",
        "CREATE TABLE odd (x text);\n-- a comment; with a semicolon and a ' quote\n"
        "INSERT INTO odd VALUES ('100% :a; %s %(a)s ''quoted'' -- no comment');\n/* ; */",
    )
    with place.target() as target:
        migrate(target, steps.files())
    assert place.rows("SELECT x FROM odd") == [("100% :a; %s %(a)s 'quoted' -- no comment",)]


@rolls_back
def test_a_failing_step_leaves_nothing_behind_and_says_where(place: Place, steps: Steps) -> None:
    steps.add("good", "CREATE TABLE good (x integer);")
    bad = steps.add("bad", "CREATE TABLE half (x integer);\n\nINSERT INTO nowhere VALUES (1);")
    with place.target() as target:
        with pytest.raises(SchemaError) as caught:
            migrate(target, steps.files())
        text = str(caught.value)
        assert f"step {bad.name} failed: line 3, 'INSERT INTO nowhere VALUES (1);'" in text
        assert "nowhere" in text
        assert "It was rolled back and left nothing behind" in text
        assert f"`{target.command('migrate')}`" in text
        assert [name for name in place.schema() if "half" in name] == []
        assert len(place.history()) == steps.shipped + 1
        # The same target goes on once the file is mended: it was never applied, so it may change.
        bad.write_text(bad.read_text().replace("INSERT INTO nowhere VALUES (1);", ""))
        assert migrate(target, steps.files()).applied == (bad.name,)


@commits
def test_a_step_that_fails_in_its_middle_says_where_and_stops_all_others(place: Place, steps: Steps) -> None:
    steps.add("good", "CREATE TABLE good (x integer);")
    bad = steps.add("bad", "CREATE TABLE half (x integer);\n\nINSERT INTO nowhere VALUES (1);")
    later = steps.add("later", "CREATE TABLE later (x integer);")
    with place.target() as target:
        with pytest.raises(SchemaError) as caught:
            migrate(target, steps.files())
        text = str(caught.value)
        assert f"step {bad.name} failed: line 3, 'INSERT INTO nowhere VALUES (1);': ProgrammingError 1146: " in text
        assert "doesn't exist" in text
        assert "What it did before that has stayed" in text
        assert f"`{target.command('migrate')}`, which goes on, or says what to look at first" in text
        assert place.rows("SELECT x FROM half") == []
        found = [step.state for step in status(target, steps.files())]
        assert found == [State.APPLIED] * (steps.shipped + 1) + [State.FAILED, State.PENDING]
        with pytest.raises(SchemaError, match=f"step {bad.name} began, on 20.*`chatkeep repair"):
            migrate(target, steps.files())
        place.execute("DROP TABLE half;")
        bad.write_text(bad.read_text().replace("INSERT INTO nowhere VALUES (1);", ""))
        assert repair(target, steps.files()) == [bad.name]
        assert migrate(target, steps.files()).applied == (bad.name, later.name)
        validate(target, steps.files())


@commits
def test_a_step_of_which_no_statement_took_effect_needs_no_repair(place: Place, steps: Steps) -> None:
    bad = steps.add("bad", "-- about it\nINSERT INTO nowhere VALUES (1);\nCREATE TABLE one (x integer);")
    with place.target() as target:
        with pytest.raises(SchemaError, match=f"step {bad.name} failed: line 2, 'INSERT INTO nowhere"):
            migrate(target, steps.files())
        assert states(place, steps)[-1] is State.PENDING
        bad.write_text(bad.read_text().replace("INSERT INTO nowhere VALUES (1);", ""))
        assert migrate(target, steps.files()).applied == (bad.name,)


def test_a_failure_without_a_place_in_the_text_still_names_the_file(place: Place, steps: Steps) -> None:
    bad = steps.add("bad", "CREATE TABLE one (x integer CHECK (x > 5));\nINSERT INTO one VALUES (1);")
    with place.target() as target, pytest.raises(SchemaError, match=f"step {bad.name} failed: .*(?i:check|constraint)"):
        migrate(target, steps.files())


@rolls_back
def test_a_file_that_commits_by_itself_is_found_out(place: Place, steps: Steps) -> None:
    steps.add("commits", "CREATE TABLE one (x integer);\nCOMMIT;\nCREATE TABLE two (x integer);")
    with place.target() as target, pytest.raises(SchemaError) as caught:
        migrate(target, steps.files())
    assert "must hold no BEGIN, COMMIT or ROLLBACK" in str(caught.value)
    assert "Whether it took effect is not known" in str(caught.value)


@commits
@pytest.mark.parametrize("begin", ["BEGIN;", "START TRANSACTION;", "SET autocommit = 0;"])
def test_a_transaction_that_a_file_leaves_open_is_committed(place: Place, steps: Steps, begin: str) -> None:
    steps.add("begins", f"CREATE TABLE one (x integer);\n{begin}\nINSERT INTO one VALUES (1);")
    with place.target() as target:
        migrate(target, steps.files())
    with place.target() as target:
        validate(target, steps.files())
    assert place.rows("SELECT x FROM one") == [(1,)]


@commits
def test_a_file_that_does_not_settle_its_row_stays_failed(place: Place, steps: Steps) -> None:
    path = steps.add("forgets", "CREATE TABLE one (x integer);")
    path.write_text("CREATE TABLE one (x integer);")
    with place.target() as target, pytest.raises(SchemaError, match="does not end by inserting row"):
        migrate(target, steps.files())
    assert states(place, steps)[-1] is State.FAILED


@rolls_back
def test_a_file_without_its_history_row_is_found_out(place: Place, steps: Steps) -> None:
    path = steps.add("forgets", "CREATE TABLE one (x integer);")
    path.write_text("CREATE TABLE one (x integer);")
    with place.target() as target, pytest.raises(SchemaError, match="does not end by inserting row"):
        migrate(target, steps.files())
    assert not [name for name in place.schema() if name.endswith(" one")]


def test_an_edited_file_is_detected_by_all_commands(place: Place, steps: Steps) -> None:
    path = steps.add("second", "CREATE TABLE second (x integer);")
    with place.target() as target:
        migrate(target, steps.files())
        path.write_text(path.read_text().replace("x integer", "x text"))
        steps.add("third", "CREATE TABLE third (x integer);")
        for call in (validate, migrate, pending_sql):
            with pytest.raises(SchemaError, match=f"{path.name} is not the file that was applied on 20"):
                call(target, steps.files())
    assert states(place, steps)[-2:] == [State.EDITED, State.PENDING]


def test_other_line_ends_are_no_edit(place: Place, steps: Steps) -> None:
    with place.target() as target:
        migrate(target, steps.files())
        for path in steps.directory.iterdir():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        validate(target, steps.files())


def test_a_newer_database_asks_for_a_newer_package(place: Place, steps: Steps) -> None:
    steps.add("future", "CREATE TABLE future (x integer);")
    with place.target() as target:
        migrate(target, steps.files())
    for mode in ("validate", "migrate"):
        with pytest.raises(SchemaError, match="Upgrade the package chatkeep"):
            open_repository(place.url, schema=mode)
    assert states(place)[-1] is State.NEWER
    open_repository(place.url, schema="ignore").close()


def test_opening_for_validation_names_the_command_where_there_are_no_tables(place: Place) -> None:
    with pytest.raises(SchemaError) as caught:
        open_repository(place.url, schema="validate")
    text = str(caught.value)
    assert "there are no chatkeep tables" in text
    assert "Run `chatkeep migrate --url " in text
    assert "V0001__chat_memory.sql" in text


def test_opening_may_migrate(place: Place) -> None:
    with open_repository(place.url, schema="migrate") as repository:
        repository.append("a", [Message.user("hello")])
    with open_repository(place.url, schema="validate") as repository:
        assert [message.text for message in repository.find_by_conversation_id("a")] == ["hello"]


@pytest.mark.asyncio
async def test_opening_may_migrate_asynchronously(place: Place) -> None:
    async with await open_async_repository(place.url, schema="migrate") as repository:
        await repository.append("a", [Message.user("hello")])
    async with await open_async_repository(place.url, schema="validate") as repository:
        assert [message.text for message in await repository.find_by_conversation_id("a")] == ["hello"]


def test_a_lock_that_others_hold_is_waited_for_only_so_long(place: Place) -> None:
    with place.target() as holder, place.target() as target, holder.lock(5):
        with pytest.raises(StorageTimeoutError, match=r"holds the (write )?lock"):
            migrate(target, lock_timeout=0.5)
    with place.target() as target:
        assert migrate(target, lock_timeout=0.5).applied != ()


def test_the_printed_sql_is_what_would_run(place: Place, steps: Steps) -> None:
    second = steps.add("second", "CREATE TABLE second (x integer);")
    with place.target() as target:
        everything = pending_sql(target, steps.files())
        for file in steps.files():
            assert file.script.strip() in everything
        place.execute(everything)
        validate(target, steps.files())
        assert pending_sql(target, steps.files()) == ""
    assert states(place, steps) == [State.BY_HAND] * len(steps.files())
    assert second.read_text().strip() in pending_sql(place.backend, steps.files())
