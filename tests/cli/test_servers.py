"""The command on servers, whose schema it never changes unasked and whose passwords it never shows."""

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import URL, make_url

from chatkeep import Media, Message, Text, open_repository
from tests.services import service_url, skip_or_fail

from .conftest import Run

ABOUT = {
    "postgresql": ("PostgreSQL", "psycopg", r"PostgreSQL 1\d"),
    "mysql": ("MySQL", "PyMySQL", r"MySQL \d+\.\d+\.\d+.*, max_allowed_packet \d+M"),
    "mariadb": ("MariaDB", "PyMySQL", r"MariaDB \d+\.\d+\.\d+.*, max_allowed_packet \d+M"),
}
"""The product, the driver, and what doctor says about the server."""
COMMITS_EACH_STATEMENT = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("mysql", "mariadb")]
UNREACHABLE = "127.0.0.1:1"


@pytest.fixture
def database() -> str:
    """What `run` uses where a test names nothing: here each test does."""
    return "inprocess:"


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ABOUT])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server(backend: str) -> Iterator[str]:
    """The URL of an empty database of the test's own."""
    service = service_url(backend)
    if service.url is None:
        skip_or_fail(backend, str(service.reason))
    url = make_url(service.url)
    name = f"test_cli_{uuid.uuid4().hex}"
    execute = _on_postgresql if backend == "postgresql" else _on_mysql
    execute(url, f"CREATE DATABASE {name}")
    yield url.set(database=name, query={}).render_as_string(hide_password=False)
    execute(url, f"DROP DATABASE {name}" + (" WITH (FORCE)" if backend == "postgresql" else ""))


def _on_postgresql(url: URL, statement: str) -> None:
    import psycopg

    with psycopg.connect(
        host=url.host, port=url.port, user=url.username, password=url.password, dbname=url.database, autocommit=True
    ) as connection:
        connection.execute(statement)  # type: ignore[arg-type]


def _on_mysql(url: URL, statement: str) -> None:
    import pymysql

    account = {"user": url.username, "password": url.password or "", "database": url.database}
    with pymysql.connect(host=url.host, port=url.port or 3306, autocommit=True, **account) as connection:  # type: ignore[arg-type]
        connection.cursor().execute(statement)


def test_from_an_empty_server_to_a_working_one(run: Run, backend: str, server: str) -> None:
    product, driver, described = ABOUT[backend]
    refused = run("ls", url=server)
    assert refused.code == 1
    assert f"{product} on " in refused.err
    assert f"`chatkeep migrate --url {backend}://" in refused.err
    assert run("doctor", url=server).code == 1
    printed = run("sql", url=server).out
    assert "CREATE TABLE" in printed
    assert ("BEGIN;" in printed) is (backend == "postgresql")
    assert "V0001__chat_memory.sql applied" in run("migrate", "--lock-timeout", "5s", url=server).out
    assert run("validate", url=server).code == 0
    assert run("status", url=server).lines[0].endswith("\tapplied")
    assert run("sql", url=server).out == ""
    checked = run("doctor", url=server)
    assert checked.code == 0
    assert f"✓ driver        {driver} " in checked.out
    assert re.search(rf"✓ server        {described}", checked.out)
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


Change = Callable[[URL], URL]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: url.set(password="geheimwort"), r"[Aa]ccess denied|password authentication failed"),
        (lambda url: url.set(database="test_not_there"), r"Unknown database|does not exist"),
        (lambda url: url.set(host="127.0.0.1", port=1), r"[Cc]onnection refused"),
        (lambda url: url.set(host="no-such-host.invalid"), r"not known|resolve"),
    ],
    ids=["wrong password", "unknown database", "nobody listens", "unknown host"],
)
def test_a_wrong_address_is_one_line_that_says_what_is_wrong_and_no_password(
    run: Run, server: str, change: Change, said: str
) -> None:
    url = change(make_url(server)).update_query_dict({"retry_timeout": "1s"}).render_as_string(hide_password=False)
    for command in ("ls", "migrate", "status", "doctor"):
        done = run(command, url=url)
        everything = done.out + done.err
        assert done.code == 1
        assert re.search(said, everything), everything
        assert len((done.err or done.lines[-1]).strip().splitlines()) == 1
        assert "geheimwort" not in everything
        assert f":{make_url(url).password}@" not in everything


@pytest.mark.parametrize("backend", COMMITS_EACH_STATEMENT, indirect=True)
@pytest.mark.parametrize("completed", [False, True])
def test_a_step_that_died_is_shown_and_repaired(run: Run, server: str, completed: bool) -> None:
    run("migrate", url=server)
    _on_mysql(make_url(server), "UPDATE chatkeep_schema_history SET success = FALSE")
    assert run("status", url=server).lines[0].endswith("\tfailed")
    for command in ("validate", "migrate", "ls", "sql"):
        refused = run(command, url=server)
        assert refused.code == 1
        assert "V0001__chat_memory.sql began, on 20" in refused.err
        assert "`chatkeep repair --url " in refused.err
    done = run("repair", *(["--completed"] if completed else []), url=server)
    assert done.code == 0
    assert ("counts as applied by hand" if completed else "will run again") in done.out
    assert run("migrate", url=server).code == 0
    assert run("status", url=server).lines[0].endswith("\tapplied by hand" if completed else "\tapplied")
    assert run("doctor", url=server).code == 0


@pytest.mark.parametrize("backend", COMMITS_EACH_STATEMENT, indirect=True)
def test_the_other_products_scheme_is_a_wrong_url(run: Run, backend: str, server: str) -> None:
    other = "mariadb" if backend == "mysql" else "mysql"
    url = make_url(server).set(drivername=other).render_as_string(hide_password=False)
    for command in ("ls", "migrate", "status"):
        refused = run(command, url=url)
        assert refused.code == 2
        assert re.fullmatch(rf"error: {other}: the server is .*; use a {backend}: URL\n", refused.err)


@pytest.mark.parametrize("backend", COMMITS_EACH_STATEMENT, indirect=True)
def test_a_certificate_of_no_known_authority_says_which_option_to_look_at(run: Run, server: str) -> None:
    refused = run("ls", url=f"{server}?sslmode=verify-full")
    if refused.code == 0:
        pytest.skip("this server's certificate is trusted here")
    assert refused.code == 1
    assert re.search("check sslrootcert, the file of the authority|doesn't support (SSL|it)", refused.err)
