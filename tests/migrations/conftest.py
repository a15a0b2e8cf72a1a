"""An empty database of each engine and a folder of steps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.migrations.mysql_places import MariadbPlace, MysqlPlace
from tests.migrations.places import BACKENDS, Place, PostgresqlPlace, SqlitePlace, Steps, each
from tests.services import service_url, skip_or_fail

pytest.register_assert_rewrite("tests.migrations.shared_checks")


@pytest.fixture
def sqlite(tmp_path: Path) -> SqlitePlace:
    return SqlitePlace(tmp_path / "chat.db")


@pytest.fixture
def postgresql() -> Iterator[PostgresqlPlace]:
    place = PostgresqlPlace(address_of("postgresql"))
    yield place
    place.drop()


@pytest.fixture
def mysql() -> Iterator[MysqlPlace]:
    place = MysqlPlace(address_of("mysql"))
    yield place
    place.drop()


@pytest.fixture
def mariadb() -> Iterator[MariadbPlace]:
    place = MariadbPlace(address_of("mariadb"))
    yield place
    place.drop()


@pytest.fixture(params=each(BACKENDS))
def place(request: pytest.FixtureRequest) -> Place:
    """Each engine in turn."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def steps(place: Place, tmp_path: Path) -> Steps:
    return Steps(place, tmp_path / "steps")


def address_of(backend: str) -> str:
    service = service_url(backend)
    if service.url is None:
        skip_or_fail(backend, str(service.reason))
    return service.url
