"""An empty database of each engine and a folder of steps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.migrations.places import Place, PostgresqlPlace, SqlitePlace, Steps
from tests.services import service_url, skip_or_fail


@pytest.fixture
def postgresql() -> Iterator[PostgresqlPlace]:
    service = service_url("postgresql")
    if service.url is None:
        skip_or_fail("postgresql", str(service.reason))
    place = PostgresqlPlace(service.url)
    yield place
    place.drop()


@pytest.fixture
def sqlite(tmp_path: Path) -> SqlitePlace:
    return SqlitePlace(tmp_path / "chat.db")


@pytest.fixture(
    params=[pytest.param("sqlite", marks=pytest.mark.sqlite), pytest.param("postgresql", marks=pytest.mark.postgresql)]
)
def place(request: pytest.FixtureRequest) -> Place:
    """Each engine in turn."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def steps(place: Place, tmp_path: Path) -> Steps:
    return Steps(place.backend, tmp_path / "steps")
