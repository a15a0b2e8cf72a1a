"""What is known of each kind of server: how its version is read, and that it agrees with docker-compose.yml."""

import re

import pytest
from sqlalchemy.engine import make_url

from tests import services

SECRET = "hunter2-hunter2"


class Answer:
    """A driver's connection and cursor in one, for a server that gives the same answer to everything."""

    def __init__(self, *row: str) -> None:
        self.row = row

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cursor(self) -> "Answer":
        return self

    def execute(self, statement: str) -> None:
        pass

    def fetchone(self) -> tuple[str, ...]:
        return self.row

    def close(self) -> None:
        pass


class TestVersions:
    """What probes make of servers that are not at hand; these texts are what such servers answer."""

    MYSQL = ("9.7.4", "MySQL Community Server - GPL")
    MARIADB = ("11.8.9-MariaDB-ubu2404", "mariadb.org binary distribution")
    RENAMED = ("11.8.9", "MariaDB Server")
    """MariaDB's `version` is an option that people set for the sake of clients which know MySQL only."""

    @pytest.mark.parametrize(
        ("backend", "answer", "product"),
        [
            ("mysql", MYSQL, "MySQL 9.7.4"),
            ("mysql", ("9.7.4-2", "(Debian)"), "MySQL 9.7.4"),
            ("mariadb", MARIADB, "MariaDB 11.8.9"),
            ("mariadb", RENAMED, "MariaDB 11.8.9"),
        ],
    )
    def test_mysql_and_mariadb(
        self, monkeypatch: pytest.MonkeyPatch, backend: str, answer: tuple[str, str], product: str
    ) -> None:
        pymysql = pytest.importorskip("pymysql")
        monkeypatch.setattr(pymysql, "connect", lambda **_: Answer(*answer))
        assert services.SERVERS[backend].probe(make_url(f"{backend}://db.example/x"), 1) == product

    @pytest.mark.parametrize(("backend", "answer"), [("mysql", MARIADB), ("mysql", RENAMED), ("mariadb", MYSQL)])
    def test_one_is_not_taken_for_the_other(
        self, monkeypatch: pytest.MonkeyPatch, backend: str, answer: tuple[str, str]
    ) -> None:
        pymysql = pytest.importorskip("pymysql")
        monkeypatch.setattr(pymysql, "connect", lambda **_: Answer(*answer))
        url = f"{backend}://someone:{SECRET}@db.example/x"
        monkeypatch.setenv(services.override_variable(backend), url)
        found = services.find_service(backend)
        assert found.reason is not None
        assert f"answers at {backend}://db.example/x, where " in found.reason
        assert SECRET not in found.reason

    @pytest.mark.parametrize(
        ("answer", "product"),
        [
            (
                "Microsoft SQL Server 2022 (RTM-CU14) (KB5038325) - 16.0.4135.4 (X64) \n\tJul …",
                "SQL Server 16.0.4135.4",
            ),
            ("Microsoft SQL Azure (RTM) - 12.0.2000.8 \n…", "Microsoft SQL Azure (RTM) 12.0.2000.8"),
            (
                "Something with SQL Server Compatibility - 12.0.2000.8\n…",
                "Something with SQL Server Compatibility 12.0.2000.8",
            ),
        ],
    )
    def test_sqlserver(self, monkeypatch: pytest.MonkeyPatch, answer: str, product: str) -> None:
        pymssql = pytest.importorskip("pymssql")
        monkeypatch.setattr(pymssql, "connect", lambda **_: Answer(answer))
        assert services.SERVERS["sqlserver"].probe(make_url("sqlserver://db.example/x"), 1) == product


class TestComposeFile:
    @pytest.mark.parametrize("backend", sorted(services.SERVERS))
    def test_every_server_is_pinned_listens_on_loopback_and_is_asked_a_query(self, backend: str) -> None:
        section = self.section_of(backend)
        assert re.search(r"image: \S+:[^\s:]*\d[^\s:]*$", section, re.MULTILINE), "the image's tag is not pinned"
        ports = re.findall(r'^      - "(.*:\d+)"$', section, re.MULTILINE)
        assert ports
        for port in ports:
            assert port.startswith(f"127.0.0.1:${{{backend.upper()}_PORT:-0}}:")
        assert re.search(
            r"healthcheck:\n      test:\n        - CMD-SHELL\n        - >-\n(          .*\n)*.*SELECT 1", section
        )

    @pytest.mark.parametrize("backend", sorted(services.SERVERS))
    def test_the_address_is_made_of_the_variables_that_the_container_gets(self, backend: str) -> None:
        environment = dict(re.findall(r'^      ([A-Z_]+): "?([^"\n]*)"?$', self.section_of(backend), re.MULTILINE))
        url = services.SERVERS[backend].address(environment, "127.0.0.1", 4711)
        assert url.drivername == backend
        assert url.port == 4711
        assert {url.username, url.database} < {*environment.values(), "root", "sa", "master"}
        assert str(url.password) in environment.values()

    @staticmethod
    def section_of(backend: str) -> str:
        text = (services.REPOSITORY_ROOT / services.COMPOSE_FILE).read_text()
        section = re.search(rf"^  {backend}:\n((?:    .*\n|\n)+)", text, re.MULTILINE)
        assert section is not None, f"docker-compose.yml has no service {backend}"
        return section[1]


class TestRealServer:
    @pytest.mark.parametrize(
        ("backend", "other"),
        [
            pytest.param("mysql", "mariadb", marks=pytest.mark.mysql),
            pytest.param("mariadb", "mysql", marks=pytest.mark.mariadb),
        ],
    )
    def test_it_is_not_taken_for_its_relative(self, backend: str, other: str) -> None:
        found = services.service_url(backend)
        if not found.available:
            services.skip_or_fail(backend, str(found.reason))
        with pytest.raises(services.WrongServerError, match=re.escape(str(found.version))):
            services.SERVERS[other].probe(make_url(found.url or ""), 5)
