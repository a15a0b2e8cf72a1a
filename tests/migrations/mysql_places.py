"""A database of its own on MySQL or MariaDB, with the worst of the usual defaults: Latin-1, compared without case."""

import functools
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pymysql
from pymysql.constants import CLIENT
from sqlalchemy.engine import make_url

from tests.migrations.places import Place

SHELLS = ("mysql", "mariadb")
"""Either product's shell talks to either server; MariaDB's image has no `mysql`, MySQL's no `mariadb`."""


class MysqlPlace(Place):
    backend = "mysql"
    slow_statement = "DO SLEEP(30);"
    now = "UTC_TIMESTAMP(6)"
    # The row is there already where chatkeep migrates.
    history_end = "\nON DUPLICATE KEY UPDATE success = TRUE"

    def __init__(self, server: str) -> None:
        self.server = make_url(server)
        self.database = f"test_migrations_{uuid.uuid4().hex[:12]}"
        self.url = self.server.set(database=self.database).render_as_string(False)
        self.administer(f"CREATE DATABASE {self.database} CHARACTER SET latin1 COLLATE latin1_swedish_ci")

    def drop(self) -> None:
        self.administer(f"DROP DATABASE {self.database}")

    def connect(self, database: str | None = None, **parameters: Any) -> "pymysql.Connection[Any]":
        found: pymysql.Connection[Any] = pymysql.connect(
            host=self.server.host or "localhost",
            port=self.server.port or 3306,
            user=self.server.username,
            password=self.server.password or "",
            database=database,
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            **parameters,
        )
        return found

    def administer(self, script: str) -> None:
        self._run(script, None)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._run(statement, self.database)

    def execute(self, script: str) -> None:
        self._run(script, self.database)

    def _run(self, script: str, database: str | None) -> list[tuple[Any, ...]]:
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(script)
            rows = list(cursor.fetchall())
            while cursor.nextset():
                rows = list(cursor.fetchall())
            return rows

    def shell(self, *arguments: str, text: str) -> "subprocess.CompletedProcess[str] | None":
        """The engine's own shell, on this machine or in the server's container; None where there is none."""
        command = _shell(str(self.server.host), self.server.port or 3306)
        if command is None:
            return None
        host, port = str(self.server.host), str(self.server.port or 3306)
        if command[0] == "docker":  # inside of it the server has its usual port
            host, port = "127.0.0.1", "3306"
        address = ["--host", host, "--port", port, "--user", str(self.server.username)]
        return subprocess.run(
            [*command, *address, *arguments, self.database],
            env={**os.environ, "MYSQL_PWD": str(self.server.password)},
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def apply_by_hand(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        done = self.shell(text=text)
        if done is None:
            self.execute(text)  # as a tool would that sends the whole file at once
        else:
            assert done.returncode == 0, done.stderr

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for table, *properties in self.rows(
            "SELECT table_name, engine, row_format, table_collation FROM information_schema.tables "
            "WHERE table_schema = DATABASE() ORDER BY 1"
        ):
            found[f"table {table}"] = {"properties": properties, "columns": []}
        for table, *column in self.rows(
            "SELECT table_name, column_name, column_type, is_nullable, column_default, collation_name, extra "
            "FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position"
        ):
            found[f"table {table}"]["columns"].append(column)
        for table, name, *column in self.rows(
            "SELECT table_name, index_name, column_name, collation, sub_part, non_unique "
            "FROM information_schema.statistics WHERE table_schema = DATABASE() "
            "ORDER BY table_name, index_name, seq_in_index"
        ):
            found.setdefault(f"index {table}.{name}", []).append(column)
        for name, clause in self.rows(
            "SELECT constraint_name, check_clause FROM information_schema.check_constraints "
            "WHERE constraint_schema = DATABASE() ORDER BY 1"
        ):
            found[f"check {name}"] = clause
        return found


class MariadbPlace(MysqlPlace):
    backend = "mariadb"


@functools.cache
def _shell(host: str, port: int) -> list[str] | None:
    for name in SHELLS:
        if found := shutil.which(name):
            return [found]
    if host not in ("localhost", "127.0.0.1"):
        return None
    listing = ["docker", "ps", "--filter", f"publish={port}", "--format", "{{.ID}}"]
    try:
        container = subprocess.run(listing, capture_output=True, text=True, timeout=10, check=True).stdout.split()[0]
        for name in SHELLS:
            inside = ["docker", "exec", "--interactive", "--env", "MYSQL_PWD", container, name]
            if subprocess.run([*inside, "--version"], capture_output=True, timeout=10, check=False).returncode == 0:
                return inside
    except (OSError, subprocess.SubprocessError, IndexError):
        pass
    return None
