"""One connection for the time of one operation: statements on the driver's own cursor, transactions, chunks."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chatkeep.backends.relational.dialect import Dialect
    from chatkeep.backends.relational.sqlite_files import FileGate

Parameters = Mapping[str, Any] | Sequence[Any]
"""By name, or in the order of the statement for a driver that takes them so."""

statement_log = logging.getLogger("chatkeep.statements")
"""One DEBUG record for each statement that is sent: its text, never its values."""


class Session:
    """Not for two threads at once. The database opens, commits or rolls back, and closes it."""

    __slots__ = (
        "__weakref__",
        "_cursor",
        "_gate",
        "_in_transaction",
        "_queue",
        "_turn",
        "at_risk",
        "connecting",
        "dialect",
    )

    def __init__(self, dialect: Dialect, gate: FileGate | None = None) -> None:
        self.dialect = dialect
        self.at_risk = False
        """Whether a statement under way may commit, so that a lost reply leaves the outcome unknown."""
        self.connecting = False
        """Whether a new connection is being made for it, which has its place in the pool already."""
        self._cursor: Any = None
        self._gate = gate
        self._turn: threading.Lock | None = None
        self._in_transaction = False
        self._queue: list[tuple[str, Parameters | None]] = []
        """What travels with the next statement, on engines that take several in one message."""

    @property
    def has_place(self) -> bool:
        """Whether it holds a connection of the pool, or the place for one."""
        return self.connecting or self.is_open

    @property
    def driver_connection(self) -> Any:
        """The driver's own connection, for what no statement says."""
        return self._cursor.connection

    @property
    def is_open(self) -> bool:
        """Whether it holds a connection."""
        return self._cursor is not None

    def rows(self, statement: str, parameters: Parameters | None = None) -> list[Any]:
        """All rows of a read."""
        self._execute(statement, parameters)
        found: list[Any] = self._cursor.fetchall()
        return found

    def row(self, statement: str, parameters: Parameters | None = None) -> Any:
        """The first row, or None."""
        self._execute(statement, parameters)
        return self._cursor.fetchone()

    def run(self, statement: str, parameters: Parameters | None = None) -> int:
        """The number of rows a write touched. Outside of a transaction it commits itself."""
        self.at_risk = not self._in_transaction
        self._execute(statement, parameters)
        self.at_risk = False
        count: int = self._cursor.rowcount
        return count

    def defer(self, statement: str, parameters: Parameters) -> None:
        """A write inside a transaction whose count nobody asks for: it may travel with the next statement."""
        if self.dialect.pipelines:
            if _holds_rows(parameters) and any(_holds_rows(values) for _, values in self._queue):
                self._flush()  # one message holds the rows of one statement at most
            self._queue.append((statement, parameters))
        else:
            self.run(statement, parameters)

    def row_of_write(self, statement: str, parameters: Parameters) -> Any:
        """The first row that a write returns."""
        self.at_risk = not self._in_transaction
        self._execute(statement, parameters)
        self.at_risk = False
        return self._cursor.fetchone()

    def run_many(self, statement: str, parameters: Sequence[Mapping[str, Any]]) -> None:
        """One write for each of the parameter sets, inside a transaction."""
        _log(statement)
        self._cursor.executemany(statement, parameters)

    def rows_by_id(self, name: str, ids: Sequence[str], parameters: Mapping[str, Any]) -> list[Any]:
        """The rows of the read `name`, which has `IN ({ids})`."""
        return [row for chunk in self._chunks(name, ids, parameters) for row in self.rows(*chunk)]

    def run_by_id(self, name: str, ids: Sequence[str], parameters: Mapping[str, Any]) -> None:
        """The write `name`, which has `IN ({ids})`."""
        for chunk in self._chunks(name, ids, parameters):
            self.run(*chunk)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements inside are applied together, or none."""
        if self._gate is not None:
            self._turn = self._gate.take_turn(self, self.dialect.turn_seconds)
        # Before BEGIN: an interrupt may arrive after it took effect and before it returns.
        self._in_transaction = True
        if self.dialect.pipelines:
            self._queue.append((self.dialect.sql("BEGIN"), None))
        else:
            self._execute(self.dialect.sql("BEGIN"))
        yield
        self.at_risk = True
        self._execute(self.dialect.sql("COMMIT"))
        self.at_risk = False
        self._in_transaction = False
        self._give_turn()

    def roll_back(self) -> None:
        """Undo the transaction begun here."""
        if self._in_transaction:
            self._in_transaction = False
            self._queue.clear()
            self._execute(self.dialect.sql("ROLLBACK"))
            self._give_turn()

    def patient(self) -> contextlib.AbstractContextManager[None]:
        """Within the context, the driver waits for a reply for as long as it takes: for migrations."""
        return self.dialect.patient(self._cursor)

    def open(self, cursor: Any) -> None:
        """Use this cursor."""
        self._cursor = cursor
        self.connecting = False

    def close(self) -> None:
        """Let go of the cursor, and of the turn to write."""
        cursor, self._cursor = self._cursor, None
        self.connecting = False
        self._give_turn()
        if cursor is not None:
            cursor.close()

    def _give_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.release()

    def _chunks(
        self, name: str, ids: Sequence[str], parameters: Mapping[str, Any], size: int = 200
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        # SQL Server takes 2,100 parameters, old SQLite 999.
        for start in range(0, len(ids), size):
            chunk = {f"id{index}": value for index, value in enumerate(ids[start : start + size])}
            statement = self.dialect.sql(name, ids=", ".join(f":{key}" for key in chunk))
            yield statement, {**parameters, **chunk}

    def _execute(self, statement: str, parameters: Parameters | None = None) -> None:
        if self._queue:
            self._queue.append((statement, parameters))
            self._flush()
            return
        _log(statement)
        if self.dialect.binds_now and ":now" in statement:
            parameters = {**_by_name(parameters), "now": self.dialect.present()}
        if parameters is None:
            self._cursor.execute(statement)
        else:
            self._cursor.execute(statement, _bound(statement, parameters))

    def _flush(self) -> None:
        """Send what is queued as one message; the last statement's rows and count are those to be read."""
        queue = self._queue.copy()
        self._queue.clear()
        for statement, _ in queue:
            _log(statement)
        values = [value for statement, given in queue if given for value in _bound(statement, given)]
        text = "; ".join(statement for statement, _ in queue)
        if values:
            self._cursor.execute(text, values)
        else:
            self._cursor.execute(text)


def _log(statement: str) -> None:
    if statement_log.isEnabledFor(logging.DEBUG):
        statement_log.debug("%s", getattr(statement, "shown", statement))


def _holds_rows(parameters: Parameters | None) -> bool:
    """Whether these are the values of many rows, which are given in order."""
    return parameters is not None and not isinstance(parameters, Mapping)


def _bound(statement: str, parameters: Parameters) -> Any:
    """The values as the driver takes them: by name as they are, or in the order of the statement."""
    names = getattr(statement, "names", None)
    if names is None or not isinstance(parameters, Mapping):
        return parameters
    return [parameters[name] for name in names]


def _by_name(parameters: Parameters | None) -> Mapping[str, Any]:
    return parameters if isinstance(parameters, Mapping) else {}
