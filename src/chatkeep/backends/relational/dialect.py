"""What differs between SQL engines: statements, driver, values, errors. A dialect holds no operation."""

from __future__ import annotations

import abc
import contextlib
import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.statements import Statement, Statements, compile_statement, text_of
from chatkeep.capabilities import MAX_MESSAGE_BYTES, Capabilities
from chatkeep.errors import (
    ContentionError,
    Outcome,
    SchemaError,
    StorageAccessError,
    StorageCapacityError,
    StorageConnectionError,
    StorageError,
    StorageTimeoutError,
)
from chatkeep.storage.backend import Bridge, Write
from chatkeep.storage.record import MessageRecord

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from chatkeep.backends.relational.session import Session
    from chatkeep.backends.relational.sqlite_files import FileGate

CAPABILITIES = Capabilities(
    max_message_bytes=MAX_MESSAGE_BYTES,
    durable=True,
    shared_between_processes=True,
    atomic_replace=True,
    concurrent_appends=True,
    conditional_writes=True,
    stable_positions=True,
    conversation_metadata=True,
    ttl=True,
    purge=True,
    context=True,
    token_counts=True,
    bounded_cost=True,
)


LARGEST_WRITTEN_LIMIT = 1000
"""So many texts of a statement at most."""


class DuplicateKeyError(StorageError):
    """A unique constraint said no; operations know which one they meant. Never reaches the caller."""


class Dialect(Statements, abc.ABC):
    """One engine. `sql` gives statements compiled for its driver."""

    name: str
    paramstyle: str
    now: str
    """The present time, to the microsecond, in UTC, for values that are written."""
    moment: str
    """The same for comparisons: one value for the whole statement, so that an index can be searched by it."""
    lock = "FOR UPDATE"
    """The end of a read that locks its row; empty where a transaction has the whole database."""
    lock_hint = ""
    """What stands behind the table's name for the same purpose, on engines that want it there."""
    first = "LIMIT {limit}"
    """The end of an ordered read that gives so many rows."""
    pipelines = False
    """Whether several statements can travel in one message, so that BEGIN, COMMIT and writes whose count nobody asks
    for cost no round trip of their own."""
    binds_now = False
    """Whether `now` and `moment` are the bound value `:now`, which the session adds from `present()`."""
    turn_seconds = 0.0
    """How long a writer queues up in this process, where the dialect has a gate."""
    capabilities: Capabilities = CAPABILITIES
    async_bridge: Bridge = "greenlet"
    pool_slice = 0.5
    """Seconds that SQLAlchemy's pool waits at a time; the database goes on waiting, and looks for lost places."""
    rows_per_insert = 5000
    bytes_per_insert = 32 * 1024 * 1024
    """An append beyond either is stored by several statements in one transaction."""

    def __init__(self) -> None:
        self._compiled: dict[str, Statement] = {}

    def sql(self, name: str, **fragments: str) -> Statement:
        """The statement `name` as the driver wants it."""
        if not fragments and name in self._compiled:
            return self._compiled[name]
        own = {
            "now": self.now,
            "moment": self.moment,
            "lock": self.lock,
            "lock_hint": self.lock_hint,
            "first": self.first,
            "limit": ":limit",
        }
        compiled = self.compile(text_of(self, name), **{**own, **fragments})
        if not fragments:
            self._compiled[name] = compiled
        return compiled

    def compile(self, text: str, **fragments: str) -> Statement:
        """A statement with `:name` for values as the driver takes it, its `{fragments}` filled in."""
        return compile_statement(text, self.paramstyle, **fragments)

    def sql_with_limit(self, name: str, limit: int) -> Statement:
        """The statement with a usual limit written into its text, a rare one bound as `:limit`.

        PostgreSQL plans a statement with a bound LIMIT anew on every execution, which costs more than reading 20 rows.
        """
        written = str(limit) if limit <= LARGEST_WRITTEN_LIMIT else ":limit"
        key = f"{name} LIMIT {written}"
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self.sql(name, limit=written)
        return compiled

    # --- driver ---

    def cursor(self, connection: Any) -> Any:
        """A cursor on a connection of the pool."""
        return connection.cursor()

    @abc.abstractmethod
    def create_engine(self, request: OpenRequest) -> Engine:
        """The pool of connections in autocommit mode; transactions are begun by statements."""

    def gate(self, request: OpenRequest) -> FileGate | None:
        """What all connections of this process to the database pass through, where the engine needs that."""
        return None

    def present(self) -> Any:
        """The present time of this process as the driver takes it, for engines with `binds_now`."""
        return self.to_time(dt.datetime.now(dt.UTC))

    @abc.abstractmethod
    def driver_errors(self) -> type[Exception]:
        """The root of the driver's exceptions."""

    def prepare(self, connection: Any, driver_connection: Any) -> None:
        """Make a new connection ready; `connection` is in the synchronous form, also over an asynchronous driver."""

    def is_alive(self, connection: Any) -> bool:
        """Whether a pooled driver connection looks usable, without a round trip."""
        return True

    @abc.abstractmethod
    def is_idle(self, connection: Any) -> bool:
        """Whether a driver connection has no transaction open and no statement under way, by the driver's word.

        Without a round trip. False is the answer where the driver can't know, as after an interrupt.
        """

    def patient(self, cursor: Any) -> contextlib.AbstractContextManager[None]:
        """Within the context, no time-out of the driver's own ends a statement."""
        return contextlib.nullcontext()

    def abandon(self, connection: Any) -> None:
        """Close a driver connection at once, without its event loop."""

    @abc.abstractmethod
    def describe(self, session: Session) -> dict[str, str]:
        """Driver and server with their versions, for `chatkeep doctor`."""

    # --- values ---

    def to_time(self, moment: dt.datetime | None) -> Any:
        """A time as the driver takes it."""
        return moment

    def from_time(self, value: Any) -> Any:
        """A time as the driver gives it, as an aware datetime where it can be read."""
        return value

    def message(self, row: Sequence[Any]) -> MessageRecord:
        """A record of MESSAGE_COLUMNS."""
        message_id, role, content, body, created_at, token_count, expires_at, position = row
        created_at, expires_at = self.from_time(created_at), self.from_time(expires_at)
        return MessageRecord(message_id, role, content, body, created_at, token_count, expires_at, position)

    # --- statements that are more than text ---

    def append_at_once(self, session: Session, write: Write) -> int | None:
        """An append in one statement that commits itself; None where the engine has none or it did not apply."""
        return None

    def insert_messages(self, session: Session, rows: list[dict[str, Any]]) -> None:
        """Store rows with the columns of chat_message, inside a transaction."""
        session.run_many(self.sql("INSERT_MESSAGE"), rows)

    # --- errors ---

    def is_duplicate(self, error: Exception) -> bool:
        """Whether a unique constraint said no."""
        return False

    def is_disconnect(self, error: Exception) -> bool:
        """Whether the connection is gone."""
        return False

    def is_refused(self, error: Exception) -> bool:
        """Whether the engine refuses the account, the database or the file."""
        return False

    def is_contention(self, error: Exception) -> bool:
        """Whether other writers won and the transaction was rolled back."""
        return False

    def is_timeout(self, error: Exception) -> bool:
        """Whether a statement or lock time-out ran out."""
        return False

    def is_capacity(self, error: Exception) -> bool:
        """Whether the engine refused for size or space."""
        return False

    def is_missing_schema(self, error: Exception) -> bool:
        """Whether a table or column does not exist."""
        return False

    def next_step(self, error: Exception) -> str:
        """What a person can do about it, where the engine's word alone doesn't say."""
        return ""

    def translate(self, error: Exception, *, place: str, at_risk: bool) -> StorageError:
        """The driver's error as ours, with the `place` it was met at (a URL without its password).

        `at_risk`: a statement was under way that may have committed.
        """
        kind, text = self._classified(error)
        step = self.next_step(error)
        # A time-out of the driver's own cuts the connection too.
        lost = kind is StorageConnectionError or self.is_disconnect(error)
        outcome = Outcome.UNKNOWN if at_risk and lost else Outcome.NOT_APPLIED
        said = f"{self.name} at {place}: {text} ({self.reason(error)})"
        return kind(f"{said}; {step}" if step else said, backend=self.name, outcome=outcome)

    def _classified(self, error: Exception) -> tuple[type[StorageError], str]:
        if self.is_duplicate(error):
            return DuplicateKeyError, "a unique constraint refused the row"
        if self.is_contention(error):
            return ContentionError, "other writers held the lock until the retries ran out"
        if self.is_timeout(error):
            return StorageTimeoutError, "a time-out ran out"
        if self.is_refused(error):
            return StorageAccessError, "refused"
        if self.is_disconnect(error):
            return StorageConnectionError, "no connection"
        if self.is_capacity(error):
            return StorageCapacityError, "refused for size or space"
        if self.is_missing_schema(error):
            text = (
                "chatkeep's tables are missing or of another version; `chatkeep status` tells, `chatkeep migrate` mends"
            )
            return SchemaError, text
        return StorageError, "the engine refused"

    def reason(self, error: Exception) -> str:
        """The driver's words without values: only the first line, for later lines may quote rows."""
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:300]}"


class NaiveTimes(Dialect):
    """Of an engine whose columns and driver know no time zone: all is UTC there."""

    def to_time(self, moment: dt.datetime | None) -> Any:
        return None if moment is None else moment.astimezone(dt.UTC).replace(tzinfo=None)

    def from_time(self, value: Any) -> Any:
        # A driver gives what is no date as text; the codec names it.
        return value.replace(tzinfo=dt.UTC) if type(value) is dt.datetime else value
