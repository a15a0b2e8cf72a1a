"""The migration target of SQL engines: what they share. Decides nothing; migrations/runner.py does.

An engine's module beside this one fills in `_hold` (its lock) and `_run_script`. Both shipped ones roll DDL back; one
that commits each statement by itself (MySQL) needs another `apply`, one with batches (GO) another `_run_script`.
"""

from __future__ import annotations

import abc
import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import msgspec

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.backend import RelationalBackend
from chatkeep.backends.relational.database import Database
from chatkeep.backends.relational.dialect import Dialect
from chatkeep.backends.relational.session import Session
from chatkeep.errors import Outcome, SchemaError, StorageError
from chatkeep.migrations.files import vector_directory
from chatkeep.migrations.target import Applied, Target
from chatkeep.registry import find_backend
from chatkeep.storage.backend import Backend

HISTORY = "chatkeep_schema_history"
VECTOR_HISTORY = "chatkeep_vector_history"
SELECT_HISTORY = "SELECT version, description, checksum, applied_at, success FROM {history} ORDER BY version"
UPDATE_CHECKSUM = "UPDATE {history} SET checksum = :checksum WHERE version = :version"
DELETE_STEP = "DELETE FROM {history} WHERE version = :version"
COMPLETE_STEP = "UPDATE {history} SET success = :success, checksum = NULL WHERE version = :version"
SAVEPOINT, RELEASE = "SAVEPOINT chatkeep_step", "RELEASE SAVEPOINT chatkeep_step"
ENDED_BY_ITSELF = (
    "the file ends its transaction by itself; it must hold no BEGIN, COMMIT or ROLLBACK, and what ran before its "
    "COMMIT has stayed"
)


def relational_target(dialect: Dialect, request: OpenRequest, backend: Backend | None) -> RelationalTarget:
    """The target of a URL, over the connections of `backend` where it is open and synchronous."""
    owns_database = not isinstance(backend, RelationalBackend) or backend.bridge == "greenlet"
    if owns_database:
        # Through the plugin, which checks the URL and names the extra of a missing driver.
        backend = find_backend(dialect.name).open(msgspec.structs.replace(request, asynchronous=False))
    assert isinstance(backend, RelationalBackend)
    return _target_class(dialect)(backend.database, backend.database.request, owns_database=owns_database)


def vector_target(target: Target) -> Target:
    """The same database's target for the optional tables of vectors, which have a history of their own."""
    assert isinstance(target, RelationalTarget)
    target.history_table = VECTOR_HISTORY
    target.directory = vector_directory(target.backend)
    target.flags = " --vectors"
    target.place += ", vectors"
    return target


def _target_class(dialect: Dialect) -> type[RelationalTarget]:
    module = importlib.import_module(f"chatkeep.backends.relational.{dialect.name}_migration")
    found: type[RelationalTarget] = module.TARGET
    return found


class RelationalTarget(Target):
    """One SQL database. Everything under the lock happens on the one connection that holds it."""

    transactional_ddl = True
    history_table = HISTORY
    NEEDED_OPTIONS: tuple[str, ...] = ()
    """What a command line needs besides the address to reach the same tables."""

    def __init__(self, database: Database, request: OpenRequest, *, owns_database: bool) -> None:
        self.backend = database.dialect.name
        self.place, self.url = self._names(request)
        self._database = database
        self._owns_database = owns_database
        self._held: Session | None = None

    def history(self) -> list[Applied] | None:
        with self._session() as session:
            if not self._has_history(session):
                return None
            from_time = session.dialect.from_time
            return [
                Applied(version, description, checksum, from_time(applied_at), bool(success))
                for version, description, checksum, applied_at, success in session.rows(self._sql(SELECT_HISTORY))
            ]

    @contextlib.contextmanager
    def lock(self, seconds: float) -> Iterator[None]:
        with self._database.session() as session, self._hold(session, seconds):
            self._held = session
            try:
                yield
            finally:
                self._held = None

    def apply(self, version: int, description: str, checksum: str, script: str) -> None:
        session = self._locked()
        try:
            with self._step(session):
                self._mark_begin(session)
                self._run_script(session, script)
                self._check_end(session)
                values = {"version": version, "checksum": checksum}
                if session.run(self._sql(UPDATE_CHECKSUM), values) != 1:
                    raise SchemaError(f"the file does not end by inserting row {version} into {self.history_table}")
        except Exception as error:
            at_risk = session.at_risk
            with contextlib.suppress(self._driver_errors()):
                session.roll_back()
            if not isinstance(error, self._driver_errors()):
                raise
            raise self._translated(error, script, at_risk=at_risk) from error

    def forget(self, version: int) -> None:
        with self._step(self._locked()):
            self._locked().run(self._sql(DELETE_STEP), {"version": version})

    def complete(self, version: int) -> None:
        with self._step(self._locked()):
            self._locked().run(self._sql(COMPLETE_STEP), {"version": version, "success": self._true()})

    def close(self) -> None:
        if self._owns_database:
            self._database.close()

    # --- for each engine ---

    @abc.abstractmethod
    def _names(self, request: OpenRequest) -> tuple[str, str]:
        """The place in words, and the URL without its password."""

    def _address(self, request: OpenRequest, default: str) -> str:
        """Host and port, for the place in words."""
        url = request.url
        return f"{url.host or default}" + (f":{url.port}" if url.port else "")

    def _url_to_type(self, request: OpenRequest) -> str:
        """The URL as a command line takes it: without the password, with what NEEDED_OPTIONS names."""
        needed = {name: str(request.options[name]) for name in self.NEEDED_OPTIONS if name in request.options}
        # Not url.set(password=None), which keeps it.
        return request.url._replace(password=None).set(query=needed).render_as_string(hide_password=False)

    @abc.abstractmethod
    def _has_history(self, session: Session) -> bool: ...

    @abc.abstractmethod
    def _hold(self, session: Session, seconds: float) -> contextlib.AbstractContextManager[None]:
        """The engine's lock, on this connection. An error of the body is not to be hidden by one of the release."""

    @contextlib.contextmanager
    def _step(self, session: Session) -> Iterator[None]:
        """The transaction of one step."""
        with session.transaction():
            yield

    @abc.abstractmethod
    def _run_script(self, session: Session, script: str) -> None:
        """Run the statements of a file inside a transaction."""

    def _line(self, error: Exception, script: str) -> int | None:
        """The line of the script that an error is about."""
        return None

    def _true(self) -> Any:
        return True

    # --- shared ---

    @contextlib.contextmanager
    def _session(self) -> Iterator[Session]:
        if self._held is not None:
            yield self._held
        else:
            with self._database.session() as session:
                yield session

    def _locked(self) -> Session:
        if self._held is None:
            raise RuntimeError("the caller holds no lock")
        return self._held

    def _sql(self, statement: str) -> str:
        return self._database.dialect.compile(statement, history=self.history_table)

    def _driver_errors(self) -> Any:
        return self._database.dialect.driver_errors()

    def _mark_begin(self, session: Session) -> None:
        """Leave a mark in the transaction by which `_check_end` sees whether the file ended it by itself."""
        session.run(SAVEPOINT)

    def _check_end(self, session: Session) -> None:
        try:
            session.run(RELEASE)
        except self._driver_errors() as error:
            raise SchemaError(ENDED_BY_ITSELF, outcome=Outcome.UNKNOWN) from error

    def _translated(self, error: Exception, script: str, *, at_risk: bool) -> StorageError:
        known = self._database.dialect.translate(error, place=self.place, at_risk=at_risk)
        line = self._line(error, script)
        reason = self._database.dialect.reason(error)
        text = f"line {line}, {_shortened(script, line)}: {reason}" if line else reason
        return type(known)(text, backend=self.backend, outcome=known.outcome)


def _shortened(script: str, line: int | None) -> str:
    return repr(" ".join(script.splitlines()[(line or 1) - 1].split())[:60])
