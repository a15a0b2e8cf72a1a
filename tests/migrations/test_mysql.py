"""What only MySQL and MariaDB can get wrong: the other product, locks of the server, time-outs, defaults."""

import asyncio
import time
import warnings

import pytest
from sqlalchemy.engine import make_url

from chatkeep import Message, open_async_repository, open_repository
from chatkeep.config import load_settings
from chatkeep.errors import ConfigurationError, SchemaError, StorageConnectionError, StorageError, StorageTimeoutError
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, repair, status, validate
from tests.migrations.mysql_places import MysqlPlace
from tests.migrations.places import COMMIT, Steps, each, start_migrator
from tests.migrations.shared_checks import check_that_they_are_two

pytestmark = pytest.mark.parametrize("place", each(COMMIT), indirect=True)


@pytest.fixture
def other_url(place: MysqlPlace) -> str:
    """The place's address with the scheme of the other product."""
    other = "mariadb" if place.backend == "mysql" else "mysql"
    return make_url(place.url).set(drivername=other).render_as_string(False)


def test_the_other_product_is_refused_with_the_url_to_use(place: MysqlPlace, other_url: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"the server is \w+ [\d.]+.*; use a {place.backend}: URL"):
        open_repository(other_url)
    with pytest.raises(ConfigurationError, match=f"use a {place.backend}: URL"):
        open_repository(other_url, schema="migrate")
    assert place.schema() == {}


def test_the_other_product_is_refused_asynchronously_and_no_connection_is_left(
    place: MysqlPlace, other_url: str
) -> None:
    async def refused() -> None:
        with pytest.raises(ConfigurationError, match=f"use a {place.backend}: URL"):
            await open_async_repository(other_url)
        async with await open_async_repository(other_url, schema="ignore") as repository:
            with pytest.raises(ConfigurationError, match=f"use a {place.backend}: URL"):
                await repository.count_messages("a")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(refused())
    until = time.monotonic() + 5
    while sessions(place) and time.monotonic() < until:
        time.sleep(0.1)
    assert sessions(place) == 0


def sessions(place: MysqlPlace) -> int:
    listing = "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = "
    return int(place.rows(f"{listing} '{place.database}'")[0][0])


def test_the_defaults_of_the_database_do_not_matter(place: MysqlPlace) -> None:
    assert place.rows("SELECT @@character_set_database, @@collation_database") == [("latin1", "latin1_swedish_ci")]
    with open_repository(place.url, schema="migrate") as repository:
        for conversation_id in ("a", "A", "\u00e1", "a\u0301"):
            repository.append(conversation_id, [Message.user(f"{conversation_id} 🎉 漢字", id=conversation_id)])
        repository.append("a", [Message.user("capital", id="A")])
        assert len(repository.find_conversation_ids()) == 4
        assert [message.text for message in repository.find_by_conversation_id("a")] == ["a 🎉 漢字", "capital"]


def test_two_databases_of_one_server_are_two_places(place: MysqlPlace) -> None:
    other = type(place)(place.server.render_as_string(False))
    try:
        check_that_they_are_two(place, other)
    finally:
        other.drop()


def test_who_holds_the_lock_is_said_and_how_to_end_it(place: MysqlPlace) -> None:
    with place.target() as holder, place.target() as target:
        with holder.lock(5), pytest.raises(StorageTimeoutError) as caught:
            number = holder._locked().row("SELECT CONNECTION_ID()")[0]  # type: ignore[attr-defined]
            migrate(target, lock_timeout=0.3)
    text = str(caught.value)
    assert f"holds the lock, connection {number} ({place.server.username}, from " in text
    assert ", idle for " in text
    assert f"Let it end, or end it with KILL {number}, and run `{target.command('migrate')}`" in text


def test_what_a_migrator_is_doing_is_said(place: MysqlPlace, steps: Steps) -> None:
    steps.add("slow", "DO SLEEP(4);")
    process = start_migrator(place, steps)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("V0002__slow.sql …"):
                break
        time.sleep(0.3)
        with place.target() as target:
            with pytest.raises(StorageTimeoutError, match=r"running 'DO SLEEP\(4\)' for \d s"):
                migrate(target, steps.files(), lock_timeout=0.3)
            # It is at work, so its step isn't dead.
            assert [step.state for step in status(target, steps.files())] == [State.APPLIED, State.PENDING]
            assert process.wait(timeout=20) == 0
            validate(target, steps.files())
    finally:
        process.kill()
        process.communicate()


def test_the_application_s_statement_timeout_cuts_neither_a_step_nor_the_wait_for_the_lock_short(
    place: MysqlPlace, steps: Steps
) -> None:
    steps.add("long", "CREATE TABLE long_one AS SELECT SLEEP(0.8) AS n;\nDO SLEEP(1.6);")
    with place.target(statement_timeout="300ms") as target:
        with place.target() as holder, holder.lock(5), pytest.raises(StorageTimeoutError, match="holds the lock"):
            migrate(target, steps.files(), lock_timeout=1.2)
        migrate(target, steps.files())
    assert place.rows("SELECT n FROM long_one") == [(0,)]  # 1 where it was interrupted


def test_a_step_does_not_wait_for_a_table_for_ever(place: MysqlPlace, steps: Steps) -> None:
    with place.target() as target:
        migrate(target, steps.files())
        blocked = steps.add("blocked", "ALTER TABLE chat_message ADD COLUMN extra integer;")
        with place.connect(place.database) as reader, reader.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT * FROM chat_message")
            with pytest.raises(Exception, match=rf"step {blocked.name} failed: line 1, .*1205: Lock wait timeout"):
                migrate(target, steps.files(), lock_timeout=1)
        # Nothing took effect, so there is nothing to repair.
        assert migrate(target, steps.files()).applied == (blocked.name,)


def test_a_repository_that_migrated_on_opening_keeps_its_own_time_outs(place: MysqlPlace) -> None:
    settings = load_settings(place.url, {"statement_timeout": "7s", "lock_timeout": "3s"}, asynchronous=False)
    backend = settings.plugin.open(settings.request)
    assert settings.plugin.migrations is not None
    limit = "max_execution_time" if place.backend == "mysql" else "max_statement_time"
    names = f"SELECT @@{limit}, @@innodb_lock_wait_timeout, @@lock_wait_timeout"
    with backend.database.session() as session:  # type: ignore[attr-defined]
        before = session.row(names)
    target = settings.plugin.migrations(settings.request, backend)
    migrate(target)
    with place.target() as other, other.lock(0.2):
        pass
    target.close()
    with backend.database.session() as session:  # type: ignore[attr-defined]
        assert session.row(names) == before
    backend.close()
    assert before[0] in (7000, 7)
    assert before[1] == 3


def test_a_connection_that_breaks_in_a_step_is_no_schema_error(place: MysqlPlace, steps: Steps) -> None:
    path = steps.add("suicide", "CREATE TABLE one (x int);\nKILL CONNECTION_ID();\nCREATE TABLE two (x int);")
    with place.target() as target:
        with pytest.raises(StorageError) as caught:
            migrate(target, steps.files())
        # MySQL itself speaks of an interrupted query, MariaDB of a connection that was killed.
        assert isinstance(caught.value, (StorageConnectionError, StorageTimeoutError))
        assert f"{path.name} failed: line 2" in str(caught.value)
        assert [step.state for step in status(target, steps.files())][-1] is State.FAILED
        path.write_text(path.read_text().replace("KILL CONNECTION_ID();", "").replace("TABLE", "TABLE IF NOT EXISTS"))
        assert repair(target, steps.files()) == [path.name]
        assert migrate(target, steps.files()).applied == (path.name,)


def test_a_syntax_error_is_found_in_its_line(place: MysqlPlace, steps: Steps) -> None:
    bad = steps.add("bad", "-- first\n/* second\n*/\nCREATE TABLE one (\n    x integer,\n    y integer integer\n);")
    with (
        place.target() as target,
        pytest.raises(SchemaError, match=f"step {bad.name} failed: line 6, 'y integer integer': "),
    ):
        migrate(target, steps.files())


def test_what_stands_in_executable_comments_is_run(place: MysqlPlace, steps: Steps) -> None:
    steps.add(
        "odd", "/* no; */ /*! CREATE TABLE executed (x text) */;\nSELECT 5--1;\nINSERT INTO executed VALUES ('a\\'b;');"
    )
    with place.target() as target:
        migrate(target, steps.files())
    assert place.rows("SELECT x FROM executed") == [("a'b;",)]
