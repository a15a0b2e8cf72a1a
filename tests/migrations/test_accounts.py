"""The application's account on PostgreSQL: no right to make tables, and none of chatkeep's business to need one."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy.engine import make_url

from chatkeep import open_repository
from chatkeep.errors import SchemaError
from chatkeep.migrations.runner import migrate
from tests.migrations.places import PostgresqlPlace
from tests.migrations.shared_checks import check_that_it_works, check_that_it_works_asynchronously

PASSWORD = f"secret-{uuid.uuid4().hex}"


@pytest.fixture
def account(postgresql: PostgresqlPlace) -> Iterator[str]:
    """The URL of a role that may log in and see the schema, and no more."""
    role = f"test_app_{uuid.uuid4().hex[:12]}"
    postgresql.execute(
        f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' NOSUPERUSER NOCREATEDB;"
        f"GRANT USAGE ON SCHEMA {postgresql.schema_name} TO {role};"
    )
    yield make_url(postgresql.url).set(username=role, password=PASSWORD).render_as_string(False)
    postgresql.execute(f"DROP OWNED BY {role}; DROP ROLE {role};")


def role_of(account: str) -> str:
    return str(make_url(account).username)


def grant(postgresql: PostgresqlPlace, account: str, history: str = "SELECT") -> None:
    """What docs/migrations.md tells an operator to grant."""
    role = role_of(account)
    postgresql.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON chat_conversation, chat_message TO {role};")
    if history:
        postgresql.execute(f"GRANT {history} ON chatkeep_schema_history TO {role};")


def test_an_account_without_ddl_rights_works_where_the_tables_are_there(
    postgresql: PostgresqlPlace, account: str
) -> None:
    with postgresql.target() as target:
        migrate(target)
    grant(postgresql, account)
    address = make_url(account)
    with psycopg.connect(address.set(query={}).render_as_string(False)) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"CREATE TABLE {postgresql.schema_name}.own (x int)")
    check_that_it_works(account)


@pytest.mark.asyncio
async def test_the_same_asynchronously(postgresql: PostgresqlPlace, account: str) -> None:
    with postgresql.target() as target:
        migrate(target)
    grant(postgresql, account)
    await check_that_it_works_asynchronously(account)


def test_it_is_told_to_have_another_account_migrate(postgresql: PostgresqlPlace, account: str) -> None:
    with pytest.raises(SchemaError) as caught:
        open_repository(account)
    text = str(caught.value)
    assert f"`chatkeep migrate --url 'postgresql://{role_of(account)}@" in text
    assert f"search_path={postgresql.schema_name}'`" in text
    assert "with an account that may create tables (its password goes into CHATKEEP_PASSWORD)" in text
    assert PASSWORD not in text


def test_migrating_without_the_right_says_which_right_and_which_file(postgresql: PostgresqlPlace, account: str) -> None:
    with pytest.raises(SchemaError) as caught:
        open_repository(account, schema="migrate")
    text = str(caught.value)
    assert "step V0001__chat_memory.sql failed" in text
    assert f"permission denied for schema {postgresql.schema_name}" in text
    assert PASSWORD not in text
    assert postgresql.schema() == {}


def test_a_missing_right_to_read_the_history_is_named(postgresql: PostgresqlPlace, account: str) -> None:
    with postgresql.target() as target:
        migrate(target)
    grant(postgresql, account, history="")
    with pytest.raises(Exception, match="permission denied for table chatkeep_schema_history"):
        open_repository(account, schema="validate")


def test_a_schema_that_may_not_be_used_is_not_taken_for_an_empty_database(
    postgresql: PostgresqlPlace, account: str
) -> None:
    with postgresql.target() as target:
        migrate(target)
    postgresql.execute(f"REVOKE USAGE ON SCHEMA {postgresql.schema_name} FROM {role_of(account)}")
    with pytest.raises(SchemaError) as caught:
        open_repository(account)
    text = str(caught.value)
    assert "of which no schema exists that this account may use" in text
    assert "GRANT USAGE on the schema" in text
