"""The application's account on MySQL and MariaDB: no right to make tables, and nothing that would need one."""

import uuid
from collections.abc import Iterator

import pymysql
import pytest
from sqlalchemy.engine import make_url

from chatkeep import open_repository
from chatkeep.errors import SchemaError, StorageAccessError, StorageError
from chatkeep.migrations.runner import migrate
from tests.migrations.mysql_places import MysqlPlace
from tests.migrations.places import COMMIT, each
from tests.migrations.shared_checks import check_that_it_works, check_that_it_works_asynchronously

PASSWORD = f"secret-{uuid.uuid4().hex}"
pytestmark = pytest.mark.parametrize("place", each(COMMIT), indirect=True)


@pytest.fixture
def account(place: MysqlPlace) -> Iterator[str]:
    """The URL of a user who may log in, and no more."""
    user = f"test_app_{uuid.uuid4().hex[:12]}"
    place.administer(f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}'")
    yield make_url(place.url).set(username=user, password=PASSWORD).render_as_string(False)
    place.administer(f"DROP USER {user}@'%'")


def user_of(account: str) -> str:
    return str(make_url(account).username)


def grant(place: MysqlPlace, account: str, rights: str, on: str) -> None:
    place.administer(f"GRANT {rights} ON {place.database}.{on} TO {user_of(account)}@'%'")


def grant_as_documented(place: MysqlPlace, account: str) -> None:
    """What docs/migrations.md tells an operator to grant."""
    for table in ("chat_conversation", "chat_message"):
        grant(place, account, "SELECT, INSERT, UPDATE, DELETE", table)
    grant(place, account, "SELECT", "chatkeep_schema_history")


def test_an_account_without_ddl_rights_works_where_the_tables_are_there(place: MysqlPlace, account: str) -> None:
    with place.target() as target:
        migrate(target)
    grant_as_documented(place, account)
    address = make_url(account)
    with pymysql.connect(
        host=address.host, port=address.port or 3306, user=address.username, password=PASSWORD, database=place.database
    ) as connection:
        with pytest.raises(pymysql.err.OperationalError, match="CREATE command denied"):
            connection.cursor().execute("CREATE TABLE own (x int)")
    check_that_it_works(account)


@pytest.mark.asyncio
async def test_the_same_asynchronously(place: MysqlPlace, account: str) -> None:
    with place.target() as target:
        migrate(target)
    grant_as_documented(place, account)
    await check_that_it_works_asynchronously(account)


def test_it_is_told_to_have_another_account_migrate(place: MysqlPlace, account: str) -> None:
    grant(place, account, "SELECT, INSERT, UPDATE, DELETE", "*")
    with pytest.raises(SchemaError) as caught:
        open_repository(account)
    text = str(caught.value)
    assert f"`chatkeep migrate --url {place.backend}://{user_of(account)}@" in text
    assert f"/{place.database}`" in text
    assert "with an account that may create tables (its password goes into CHATKEEP_PASSWORD)" in text
    assert PASSWORD not in text


def test_migrating_without_the_right_says_which_right_and_which_file(place: MysqlPlace, account: str) -> None:
    grant(place, account, "SELECT, INSERT, UPDATE, DELETE", "*")
    with pytest.raises(StorageError) as caught:
        open_repository(account, schema="migrate")
    text = str(caught.value)
    assert "step V0001__chat_memory.sql failed: line 7, 'CREATE TABLE IF NOT EXISTS" in text
    assert f"CREATE command denied to user '{user_of(account)}'" in text
    assert PASSWORD not in text
    assert place.schema() == {}


def test_a_table_that_the_account_may_not_see_is_not_taken_for_a_missing_one(place: MysqlPlace, account: str) -> None:
    with place.target() as target:
        migrate(target)
    grant(place, account, "SELECT, INSERT, UPDATE, DELETE", "chat_conversation")
    with pytest.raises(SchemaError) as caught:
        open_repository(account)
    text = str(caught.value)
    assert f"Looked as {user_of(account)}@%" in text
    assert "a table on which it has no right is invisible" in text
    assert "GRANT SELECT on chatkeep_schema_history" in text


def test_tables_in_another_database_are_pointed_out(place: MysqlPlace) -> None:
    with place.target() as target:
        migrate(target)
    other = type(place)(place.server.render_as_string(False))
    try:
        with pytest.raises(SchemaError, match=r"a chatkeep_schema_history is visible in .*names the wrong database"):
            open_repository(other.url)
    finally:
        other.drop()


def test_an_account_without_rights_on_the_database_is_refused_and_not_asked_to_migrate(
    place: MysqlPlace, account: str
) -> None:
    with pytest.raises(StorageAccessError, match=f"Access denied for user '{user_of(account)}'") as caught:
        open_repository(account)
    assert PASSWORD not in str(caught.value)
