"""Where the benchmarks run: databases of their own, made before and removed after. Measures nothing."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url

from benchmarks.handwritten import HandwrittenPostgresql, HandwrittenSqlite
from benchmarks.handwritten_mysql import HandwrittenMysql
from chatkeep import open_repository


class NoPlaceError(Exception):
    """A backend that can't be measured here; the text says why."""


class SqlitePlace:
    """Files in a directory that vanishes. Two writers get a file each, or they would drop each other's page cache."""

    backend = "sqlite"
    title = f"SQLite {sqlite3.sqlite_version}"
    levels = ("full", "normal")
    """Settings of `synchronous` that an append is measured with, the same on both sides."""

    def __init__(self, directory: Path) -> None:
        self._files = (directory / f"{number}.db" for number in itertools.count())
        self.url = self.new_url()

    def new_url(self, level: str = "normal") -> str:
        """chatkeep's URL of a new database that has its tables."""
        url = f"sqlite:///{next(self._files)}?synchronous={level}"
        open_repository(url, schema="migrate").close()
        return url

    def handwritten(self, url: str) -> HandwrittenSqlite:
        """The reference on the database of a URL, as durable as the URL says."""
        return HandwrittenSqlite(database_file(url), str(make_url(url).query["synchronous"]))

    def engine(self, url: str) -> Engine:
        """An SQLAlchemy engine in autocommit mode, its commits relaxed."""
        engine = create_engine(f"sqlite:///{database_file(url)}", isolation_level="AUTOCOMMIT", pool_size=1)
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = normal"))
        return engine

    def tidy(self) -> None:
        """After seeding: what a database in use has had done to it."""
        with contextlib.closing(sqlite3.connect(database_file(self.url))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


class PostgresqlPlace:
    """A schema of its own in an existing database; both sides write to the same tables, and commit alike."""

    backend = "postgresql"
    levels = ("",)

    def __init__(self, url: str, schema: str) -> None:
        self._server = url
        self._schema = schema
        self.url = make_url(url).update_query_dict({"search_path": schema}).render_as_string(hide_password=False)
        open_repository(self.url, schema="migrate").close()
        with contextlib.closing(self.handwritten(self.url)) as hand:
            settings = dict(hand.connection.execute("SELECT name, setting FROM pg_settings").fetchall())
        self.title = "PostgreSQL {server_version} (fsync={fsync}, synchronous_commit={synchronous_commit})".format(
            **{**settings, "server_version": settings["server_version"].split()[0]}
        )

    def new_url(self, level: str = "") -> str:
        return self.url

    def handwritten(self, url: str) -> HandwrittenPostgresql:
        return HandwrittenPostgresql(self._server, self._schema)

    def engine(self, url: str) -> Engine:
        """An SQLAlchemy engine in autocommit mode, its commits relaxed."""
        return create_engine(
            make_url(self._server).set(drivername="postgresql+psycopg"),
            isolation_level="AUTOCOMMIT",
            pool_size=1,
            connect_args={"options": f"-c search_path={self._schema} -c timezone=UTC -c synchronous_commit=off"},
        )

    def tidy(self) -> None:
        """After seeding: what autovacuum does to a database in use."""
        with contextlib.closing(self.handwritten(self.url)) as hand:
            hand.connection.execute("VACUUM (ANALYZE) chat_message")
            hand.connection.execute("VACUUM (ANALYZE) chat_conversation")


class MysqlPlace:
    """A database of its own on a MySQL or MariaDB server; both sides write to the same tables, and commit alike."""

    levels = ("",)

    def __init__(self, backend: str, url: str) -> None:
        self.backend = backend
        self.url = url
        open_repository(url, schema="migrate").close()
        with contextlib.closing(self.handwritten(url)) as hand:
            version, flush, binlog = hand.run(
                "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, IF(@@log_bin, @@sync_binlog, 'off')"
            )[0]
        product = {"mysql": "MySQL", "mariadb": "MariaDB"}[backend]
        self.title = f"{product} {version.split('-')[0]} (innodb_flush_log_at_trx_commit={flush}, sync_binlog={binlog})"

    def new_url(self, level: str = "") -> str:
        return self.url

    def handwritten(self, url: str) -> HandwrittenMysql:
        return HandwrittenMysql(make_url(url))

    def tidy(self) -> None:
        """After seeding: what the server does by itself in a database in use."""
        with contextlib.closing(self.handwritten(self.url)) as hand:
            hand.run("ANALYZE TABLE chat_message, chat_conversation")


Place: TypeAlias = SqlitePlace | PostgresqlPlace | MysqlPlace


@contextlib.contextmanager
def open_place(backend: str) -> Iterator[Place]:
    """The place of a backend; NoPlaceError where there is none."""
    if backend == "sqlite":
        with tempfile.TemporaryDirectory(prefix="chatkeep-bench-") as directory:
            yield SqlitePlace(Path(directory))
        return
    url = _server_url(backend)
    name = f"test_bench_{uuid.uuid4().hex[:12]}"
    if backend != "postgresql":
        with contextlib.closing(HandwrittenMysql(make_url(url))) as admin:
            admin.run(f"CREATE DATABASE {name}")
            try:
                yield MysqlPlace(backend, make_url(url).set(database=name).render_as_string(hide_password=False))
            finally:
                admin.run(f"DROP DATABASE {name}")
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        try:
            yield PostgresqlPlace(url, name)
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")


def database_file(url: str) -> str:
    return str(make_url(url).database)


def _server_url(backend: str) -> str:
    """The server that the tests use: that of CHATKEEP_TEST_<BACKEND>_URL, else a container."""
    try:
        service = importlib.import_module("tests.services").service_url(backend)
    except ImportError as error:
        raise NoPlaceError(f"tests/services.py can't be imported: {error}") from error
    if service.url is None:
        raise NoPlaceError(service.reason)
    return make_url(service.url).set(drivername=backend).render_as_string(hide_password=False)
