"""What the targets of MySQL and MariaDB make of texts, without a server: statements of a file, versions, addresses."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from chatkeep.backends.relational.mysql_migration import mysql_statements
from chatkeep.config import load_settings
from chatkeep.errors import ConfigurationError
from chatkeep.migrations.target import Target


def target_of(url: str, **options: Any) -> Target:
    """Not connected: that takes a first question."""
    settings = load_settings(url, options, asynchronous=False)
    assert settings.plugin.migrations is not None
    return settings.plugin.migrations(settings.request, None)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("SELECT 1; SELECT 2", [(1, "SELECT 1"), (1, "SELECT 2")]),
        ("SELECT 1;\n\n;;\nSELECT 2;\n", [(1, "SELECT 1"), (4, "SELECT 2")]),
        ("SELECT ';', \"a;b\", `c;d`;", [(1, "SELECT ';', \"a;b\", `c;d`")]),
        ("SELECT 'it''s; -- no';\nSELECT 2", [(1, "SELECT 'it''s; -- no'"), (2, "SELECT 2")]),
        (r"SELECT 'a\';b', 'c\\'; SELECT 2", [(1, r"SELECT 'a\';b', 'c\\'"), (1, "SELECT 2")]),
        ('SELECT "a\\";b"; SELECT 2', [(1, 'SELECT "a\\";b"'), (1, "SELECT 2")]),
        ("SELECT `a'`; SELECT 'b`;'", [(1, "SELECT `a'`"), (1, "SELECT 'b`;'")]),
        ("-- one; two's\n# three; \"four\n/* five;\nsix's */\nSELECT 1;\n-- end; of it", [(5, "SELECT 1")]),
        ("SELECT 1 -- a; b\n, 2; SELECT 3", [(1, "SELECT 1 -- a; b\n, 2"), (2, "SELECT 3")]),
        ("SELECT 1 /* a; b */, 2;", [(1, "SELECT 1 /* a; b */, 2")]),
        ("SELECT 5--1; SELECT 2", [(1, "SELECT 5--1"), (1, "SELECT 2")]),
        ("--\nSELECT 1;\n--", [(2, "SELECT 1")]),
        ("/*! SET x = ';' */; SELECT 1", [(1, "/*! SET x = ';' */"), (1, "SELECT 1")]),
        ("/*!80000 CREATE TABLE a (x int) */;", [(1, "/*!80000 CREATE TABLE a (x int) */")]),
        ("/*M!100000 CREATE TABLE a (x int) */;", [(1, "/*M!100000 CREATE TABLE a (x int) */")]),
        ("/* no */ /*! SELECT 1 */;", [(1, "/*! SELECT 1 */")]),
        ("\n\nCREATE TABLE a (\n x int\n);\nDROP TABLE a;", [(3, "CREATE TABLE a (\n x int\n)"), (6, "DROP TABLE a")]),
        ("", []),
        ("-- nothing\n", []),
        ("/* ; */", []),
    ],
)  # fmt: skip
def test_statements_are_told_apart_and_keep_their_lines(script: str, expected: list[tuple[int, str]]) -> None:
    assert list(mysql_statements(script)) == expected


@pytest.mark.parametrize(
    ("backend", "version", "new_enough"),
    [
        ("mysql", "8.0.17", True),
        ("mysql", "8.0.45-0ubuntu0.22.04.1", True),
        ("mysql", "8.4.3", True),
        ("mysql", "9.7.4-2", True),
        ("mysql", "10.0.0", True),
        ("mysql", "8.0.16", False),
        ("mysql", "5.7.44-log", False),
        ("mysql", "8.0.11-TiDB-v7.5.0", False),
        ("mariadb", "10.11.0-MariaDB", True),
        ("mariadb", "10.11.6-MariaDB-0+deb12u1", True),
        ("mariadb", "11.8.9-MariaDB-0+deb13u1 from Debian", True),
        ("mariadb", "12.0.2-MariaDB-ubu2404-log", True),
        ("mariadb", "10.6.22-MariaDB-log", False),
        ("mariadb", "10.4.34-MariaDB-1:10.4.34+maria~deb10", False),
    ],
)
def test_a_server_that_is_too_old_is_refused(
    monkeypatch: pytest.MonkeyPatch, backend: str, version: str, new_enough: bool
) -> None:
    class Session:
        def row(self, statement: str) -> tuple[str]:
            return (version,)

    @contextlib.contextmanager
    def session(self: Target) -> Iterator[Session]:
        yield Session()

    target = target_of(f"{backend}://app@db/chat")
    monkeypatch.setattr(type(target), "_session", session)
    problem = target.check()
    if new_enough:
        assert problem is None
    else:
        product, wanted = {"mysql": ("MySQL", "8.0.17"), "mariadb": ("MariaDB", "10.11.0")}[backend]
        assert problem == f"the server is {product} {version}, and chatkeep needs {wanted} or newer"


def test_the_place_and_the_command_name_what_reaches_the_tables_and_no_password() -> None:
    target = target_of("mysql://app:geheim@db:3307/chat?pool_size=3&sslmode=require")
    assert target.place == "MySQL on db:3307, database chat"
    assert target.command("migrate") == "chatkeep migrate --url 'mysql://app@db:3307/chat?sslmode=require'"
    target = target_of("mariadb://app:geheim@/chat?unix_socket=/run/mysqld/mysqld.sock")
    assert target.place == "MariaDB on /run/mysqld/mysqld.sock, database chat"
    assert "geheim" not in target.command("migrate")
    assert "unix_socket=" in target.command("migrate")


@pytest.mark.parametrize("backend", ["mysql", "mariadb"])
def test_an_authority_that_would_check_nothing_is_refused(backend: str) -> None:
    target = target_of(f"{backend}://app@127.0.0.1:1/chat?sslrootcert=/etc/ca.pem")
    with pytest.raises(ConfigurationError, match="sslmode=verify-ca and sslmode=verify-full"):
        target.check()
