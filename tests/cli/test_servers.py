"""The command on a server, whose schema it never changes unasked and whose password it never shows."""

import datetime as dt
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatkeep import Media, Message, Text, open_repository
from tests.services import service_url, skip_or_fail

from .conftest import Run

pytestmark = pytest.mark.postgresql


@pytest.fixture
def database() -> str:
    """What `run` uses where a test names nothing: here each test does."""
    return "inprocess:"


@pytest.fixture
def server() -> Iterator[str]:
    """The URL of an empty database of the test's own."""
    service = service_url("postgresql")
    if service.url is None:
        skip_or_fail("postgresql", str(service.reason))
    import psycopg
    from sqlalchemy.engine import make_url

    url = make_url(service.url)
    name = f"chatkeep_cli_{uuid.uuid4().hex}"

    def administer(statement: str) -> None:
        with psycopg.connect(
            host=url.host, port=url.port, user=url.username, password=url.password, dbname=url.database, autocommit=True
        ) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    administer(f"CREATE DATABASE {name}")
    yield url.set(database=name, query={}).render_as_string(hide_password=False)
    administer(f"DROP DATABASE {name} WITH (FORCE)")


def test_from_an_empty_server_to_a_working_one(run: Run, server: str) -> None:
    refused = run("ls", url=server)
    assert refused.code == 1
    assert "chatkeep migrate" in refused.err
    assert run("doctor", url=server).code == 1
    assert "BEGIN;" in run("sql", url=server).out
    assert "V0001__chat_memory.sql applied" in run("migrate", "--lock-timeout", "5s", url=server).out
    assert run("validate", url=server).code == 0
    checked = run("doctor", url=server)
    assert checked.code == 0
    assert "PostgreSQL" in checked.out
    assert "psycopg" in checked.out
    for outcome in (refused, checked):
        assert server not in outcome.out + outcome.err


def test_there_and_back_again_nothing_changes(run: Run, server: str, tmp_path: Path) -> None:
    first, second = f"sqlite:///{tmp_path}/first.db", f"sqlite:///{tmp_path}/second.db"
    with open_repository(first) as repository:
        repository.append(
            "t", [Message.user((Text("lone \ud800, NUL \x00, 🎉"), Media("image/png", bytes(range(256)))))]
        )
        repository.append("t", [Message.user(f"m{number}") for number in range(450)], ttl=dt.timedelta(hours=1))
        repository.update_conversation("t", title="T", metadata={"a": [1, 2.5, None]})
        repository.save_all("empty", [])
    assert run("migrate", url=server).code == 0
    assert "verified" in run("copy", first, server, url=None).err
    assert "0 of them new" in run("copy", first, server, url=None).err
    assert "verified" in run("copy", server, second, url=None).err
    with open_repository(first) as before, open_repository(second) as after:
        assert after.find_by_conversation_id("t") == before.find_by_conversation_id("t")
        there = after.get_conversation("t")
        assert there is not None
        assert (there.title, there.metadata) == ("T", {"a": [1, 2.5, None]})
        assert after.find_conversation_ids() == ["empty", "t"]
        expiry = after.history("t", after=after.history("t", limit=1).items[0].position).items[0].expires_at
        assert expiry is not None
    assert [line.split("\t")[0] for line in run("ls", "--order", "id", url=server).lines] == ["empty", "t"]
    assert len(run("show", "t", "--json", "-n", "201", url=server).lines) == 201
    assert run("purge", "--expired", "--idle", "90d", url=server).code == 0
    assert run("delete", "t", "--yes", url=server).code == 0
    assert run("show", "t", url=server).code == 1
