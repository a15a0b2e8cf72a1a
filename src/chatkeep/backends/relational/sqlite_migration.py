"""The migration target of SQLite: the write lock, and the statements of a file one by one."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Collection, Iterator
from typing import Any

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.migration import RelationalTarget
from chatkeep.backends.relational.session import Session
from chatkeep.errors import StorageTimeoutError


class SqliteTarget(RelationalTarget):
    """A file, or a database in memory. The lock is the write lock: BEGIN IMMEDIATE, begun anew after each step."""

    def _names(self, request: OpenRequest) -> tuple[str, str]:
        database = request.url.database or ""
        if database in ("", ":memory:"):
            return "SQLite database in memory", "sqlite://"
        path = os.path.abspath(os.path.expanduser(database))  # noqa: PTH100, PTH111 (as the connection does it)
        return f"SQLite file {path}", request.url.set(database=path).render_as_string(hide_password=False)

    def check(self) -> str | None:
        if sqlite3.sqlite_version_info >= (3, 35):
            return None
        return (
            f"this Python has SQLite {sqlite3.sqlite_version}, and chatkeep needs 3.35 or newer; "
            f"use another Python build"
        )

    def missing(self, tables: Collection[str]) -> list[str]:
        with self._session() as session:
            found = {row[0].lower() for row in session.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return sorted(set(tables) - found)

    def _has_history(self, session: Session) -> bool:
        statement = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        return session.row(statement, {"name": self.history_table}) is not None

    @contextlib.contextmanager
    def _hold(self, session: Session, seconds: float) -> Iterator[None]:
        before = session.row("PRAGMA busy_timeout")[0]
        self._deadline = time.monotonic() + seconds
        try:
            self._begin(session)
            yield
        finally:
            # Nothing but reads can be open here: each step has committed, or was rolled back when it failed.
            with contextlib.suppress(self._driver_errors()):
                session.roll_back()
                session.rows(f"PRAGMA busy_timeout = {int(before)}")

    def _begin(self, session: Session) -> None:
        while True:
            left = max(self._deadline - time.monotonic(), 0.0)
            # A PRAGMA takes no bound values. SQLite waits by itself, but not in every case, so the loop does too.
            session.rows(f"PRAGMA busy_timeout = {int(left * 1000)}")
            self._transaction = contextlib.ExitStack()
            try:
                self._transaction.enter_context(session.transaction())
                return
            except sqlite3.OperationalError as error:
                if not self._database.dialect.is_contention(error):
                    raise
                if left <= 0:
                    raise StorageTimeoutError(
                        f"{self.place}: another process holds the write lock of this database; waited for it in vain. "
                        f"Is another migration running, or a transaction left open?",
                        backend=self.backend,
                    ) from error
            time.sleep(min(0.05, left))

    @contextlib.contextmanager
    def _step(self, session: Session) -> Iterator[None]:
        yield
        self._transaction.close()  # COMMIT
        self._begin(session)

    def _run_script(self, session: Session, script: str) -> None:
        for line, statement in sqlite_statements(script):
            try:
                session.run(statement)
            except sqlite3.Error as error:
                error.__dict__["line"] = line
                raise

    def _line(self, error: Exception, script: str) -> int | None:
        return getattr(error, "line", None)

    def _true(self) -> Any:
        return 1


def sqlite_statements(script: str) -> Iterator[tuple[int, str]]:
    """Each statement with the number of the line it begins on. sqlite3.executescript would commit first."""
    line, begun = 1, 0
    for end in [index + 1 for index, char in enumerate(script) if char == ";"] + [len(script)]:
        text = script[begun:end]
        if end < len(script) and not sqlite3.complete_statement(text):
            continue
        code = _without_leading_comments(text)
        if code.strip():
            yield line + text.removesuffix(code).count("\n"), code
        line, begun = line + text.count("\n"), end


def _without_leading_comments(text: str) -> str:
    while True:
        text = text.lstrip()
        if text.startswith("--"):
            text = text.partition("\n")[2]
        elif text.startswith("/*"):
            text = text.partition("*/")[2]
        else:
            return text


TARGET = SqliteTarget
