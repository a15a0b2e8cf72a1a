"""What only PostgreSQL can get wrong: encodings, versions, the search_path, locks of sessions, time-outs."""

import uuid
from collections.abc import Iterator

import pytest
from sqlalchemy.engine import make_url

from chatkeep import open_repository
from chatkeep.backends.relational.postgresql_migration import PostgresqlTarget
from chatkeep.config import load_settings
from chatkeep.errors import SchemaError, StorageTimeoutError
from chatkeep.migrations.runner import migrate, status, validate
from tests.migrations.places import PostgresqlPlace, Steps
from tests.migrations.shared_checks import check_that_they_are_two

pytestmark = pytest.mark.postgresql


@pytest.fixture
def latin1(postgresql: PostgresqlPlace) -> Iterator[str]:
    name = f"test_latin1_{uuid.uuid4().hex[:12]}"
    postgresql.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    yield make_url(postgresql.url).set(database=name, query={}).render_as_string(False)
    postgresql.execute(f"DROP DATABASE {name}")


@pytest.mark.parametrize("mode", ["validate", "migrate"])
def test_a_database_that_cannot_hold_every_text_is_refused(latin1: str, mode: str) -> None:
    with pytest.raises(SchemaError, match=r"has the encoding LATIN1.*needs UTF8.*CREATE DATABASE"):
        open_repository(latin1, schema=mode)  # type: ignore[arg-type]


def test_a_server_that_is_too_old_is_refused(postgresql: PostgresqlPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresqlTarget, "MINIMUM", 990000)
    with postgresql.target() as target, pytest.raises(SchemaError, match=r"the server is PostgreSQL \d+.*needs 99"):
        migrate(target)


def test_a_search_path_without_a_schema_is_refused(postgresql: PostgresqlPlace) -> None:
    url = make_url(postgresql.url).update_query_dict({"search_path": "test_not_there"}).render_as_string(False)
    with pytest.raises(SchemaError, match=r"no schema of the search_path test_not_there exists.*CREATE SCHEMA"):
        open_repository(url, schema="migrate")


def test_tables_elsewhere_in_the_database_are_pointed_out(postgresql: PostgresqlPlace) -> None:
    with postgresql.target() as target:
        migrate(target)
    other = PostgresqlPlace(postgresql.server)
    try:
        with other.target() as target, pytest.raises(SchemaError) as caught:
            validate(target)
    finally:
        other.drop()
    assert f"Looked in the search_path {other.schema_name}; the database has a chatkeep_schema_history in" in str(
        caught.value
    )


def test_two_schemas_of_one_database_are_two_places(postgresql: PostgresqlPlace) -> None:
    other = PostgresqlPlace(postgresql.server)
    try:
        check_that_they_are_two(postgresql, other)
    finally:
        other.drop()


def test_new_tables_never_go_to_another_schema_than_the_old_ones(postgresql: PostgresqlPlace) -> None:
    """The search_path of a role names two schemas: the tables are in the second, and new ones would go to the first."""
    with postgresql.target() as target:
        migrate(target)
    first = PostgresqlPlace(postgresql.server)
    role = f"test_path_{uuid.uuid4().hex[:12]}"
    first.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'p'")
    first.execute(f"ALTER ROLE {role} SET search_path = {first.schema_name}, {postgresql.schema_name}")
    url = make_url(postgresql.url).set(username=role, password="p", query={}).render_as_string(False)
    try:
        settings = load_settings(url, {}, asynchronous=False)
        assert settings.plugin.migrations is not None
        target = settings.plugin.migrations(settings.request, None)
        validate(target)  # as a reader it finds them
        with pytest.raises(SchemaError, match=f"the tables are in schema {postgresql.schema_name}, but .*search_path="):
            with target.lock(1):
                pass
        target.close()
    finally:
        first.execute(f"DROP ROLE {role}")
        first.drop()


def test_who_holds_the_lock_is_said(postgresql: PostgresqlPlace) -> None:
    with postgresql.target(application_name="nightly-deploy") as holder, postgresql.target() as target:
        with holder.lock(5), pytest.raises(StorageTimeoutError) as caught:
            migrate(target, lock_timeout=0.3)
    text = str(caught.value)
    assert "server process" in text
    assert "nightly-deploy" in text
    assert "pg_terminate_backend" in text


def test_the_application_s_statement_timeout_does_not_cut_a_step_short(
    postgresql: PostgresqlPlace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    steps = Steps(postgresql, tmp_path_factory.mktemp("long") / "steps")
    steps.add("long", "SELECT pg_sleep(0.6);")
    with postgresql.target(statement_timeout="300ms") as target:
        migrate(target, steps.files())


def test_a_step_does_not_wait_for_a_table_for_ever(
    postgresql: PostgresqlPlace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    steps = Steps(postgresql, tmp_path_factory.mktemp("blocked") / "steps")
    with postgresql.target() as target:
        migrate(target, steps.files())
        blocked = steps.add("blocked", "ALTER TABLE chat_message ADD COLUMN extra integer;")
        with postgresql.connect() as reader, reader.transaction():
            reader.execute("SELECT * FROM chat_message")
            with pytest.raises(Exception, match=f"step {blocked.name} failed: .*lock timeout.*rolled back"):
                migrate(target, steps.files(), lock_timeout=0.5)
        assert migrate(target, steps.files()).applied == (blocked.name,)


def test_a_repository_that_migrated_on_opening_keeps_its_own_time_outs(postgresql: PostgresqlPlace) -> None:
    settings = load_settings(postgresql.url, {"statement_timeout": "7s", "lock_timeout": "3s"}, asynchronous=False)
    backend = settings.plugin.open(settings.request)
    assert settings.plugin.migrations is not None
    target = settings.plugin.migrations(settings.request, backend)
    migrate(target)
    target.close()
    with backend.database.session() as session:  # type: ignore[attr-defined]
        shown = [session.row(f"SHOW {name}")[0] for name in ("statement_timeout", "lock_timeout")]
        interval = session.row("SELECT current_setting('client_connection_check_interval', true)")[0]
        locks = session.row("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
    backend.close()
    assert (shown, interval in (None, "0"), locks[0]) == (["7s", "3s"], True, 0)


def test_a_connection_that_breaks_in_a_step_is_no_schema_error(
    postgresql: PostgresqlPlace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    steps = Steps(postgresql, tmp_path_factory.mktemp("broken") / "steps")
    steps.add("suicide", "CREATE TABLE one (x int);\nSELECT pg_terminate_backend(pg_backend_pid());")
    with postgresql.target() as target:
        with pytest.raises(Exception) as caught:
            migrate(target, steps.files())
        assert type(caught.value).__name__ == "StorageConnectionError"
        assert "__suicide.sql failed" in str(caught.value)
        assert [step.state.value for step in status(target, steps.files())][-1] == "pending"
