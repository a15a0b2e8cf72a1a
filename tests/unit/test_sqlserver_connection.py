"""SQL Server's connections, errors and demands on the server, over a driver that does as it is told."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pymssql import _mssql
from sqlalchemy.engine import make_url

from chatkeep.backends.plugin import OpenRequest
from chatkeep.backends.relational.sqlserver import SqlServerDialect
from chatkeep.backends.relational.sqlserver_connection import SqlServerConnection, _Sockets, check_address
from chatkeep.backends.relational.sqlserver_migration import SqlServerTarget
from chatkeep.errors import ConfigurationError, Outcome, StorageAccessError, StorageConnectionError, StorageError

DIALECT = SqlServerDialect()
BEGIN, COMMIT, ROLLBACK = (DIALECT.sql(name) for name in ("BEGIN", "COMMIT", "ROLLBACK"))


class FakeDriver:
    """A `_mssql.MSSQLConnection` with prepared results; an error stands for its own result."""

    def __init__(self) -> None:
        self.connected = True
        self.sent: list[str] = []
        self.results: list[Any] = []
        self.wait: Callable[[], None] = lambda: None

    def execute_query(self, text: str) -> None:
        self.sent.append(text)
        self.wait()
        self._next()

    def get_iterator(self, _: int) -> Iterator[Any]:
        return iter(self._rows)

    def nextresult(self) -> int | None:
        if not self.results:
            return None
        self._next()
        return 1

    def close(self) -> None:
        self.connected = False

    def _next(self) -> None:
        result = self.results.pop(0) if self.results else []
        if isinstance(result, BaseException):
            self.results.clear()
            raise result
        self._rows = result


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def connection(driver: FakeDriver) -> SqlServerConnection:
    return SqlServerConnection(driver)


def refusal(number: int, text: str = "no") -> _mssql.MSSQLDatabaseException:
    return _mssql.MSSQLDatabaseException((number, f"{text}DB-Lib error message 20018, severity 16:\n…\n".encode()))


def test_the_rows_and_the_count_are_those_of_the_last_result(
    driver: FakeDriver, connection: SqlServerConnection
) -> None:
    driver.results = [[(7,)], [(1, "a"), (2, "b")]]
    cursor = connection.cursor()
    cursor.execute("INSERT …; SELECT …")
    assert cursor.fetchone() == (1, "a")
    assert cursor.fetchall() == [(1, "a"), (2, "b")]
    driver.results = [[], [(3,)]]
    cursor.execute("UPDATE …; SELECT @@ROWCOUNT")
    assert cursor.rowcount == 3


def test_what_counts_nothing_has_no_count(driver: FakeDriver, connection: SqlServerConnection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE x (y INT)")
    assert cursor.rowcount == -1
    driver.results = [[("done",)]]
    cursor.execute("SELECT N'done'")
    assert cursor.rowcount == -1


def test_an_error_of_a_later_statement_is_raised(driver: FakeDriver, connection: SqlServerConnection) -> None:
    driver.results = [[(1,)], refusal(2627)]
    with pytest.raises(_mssql.MSSQLDatabaseException):
        connection.cursor().execute("SELECT 1; INSERT …")
    assert connection.is_idle


def test_a_transaction_is_open_from_begin_to_commit(driver: FakeDriver, connection: SqlServerConnection) -> None:
    cursor = connection.cursor()
    cursor.execute(f"{BEGIN}; SELECT 1")
    assert not connection.is_idle
    cursor.execute("UPDATE …")
    assert not connection.is_idle
    cursor.execute(f"UPDATE …; {COMMIT}")
    assert connection.is_idle
    cursor.execute(BEGIN)
    cursor.execute(ROLLBACK)
    assert connection.is_idle


@pytest.mark.parametrize("message", [f"{BEGIN}; SELECT 1", f"UPDATE …; {COMMIT}"])
def test_after_an_error_a_transaction_counts_as_open_until_it_is_rolled_back(
    driver: FakeDriver, connection: SqlServerConnection, message: str
) -> None:
    connection.in_transaction = True
    driver.results = [refusal(1205)]
    with pytest.raises(_mssql.MSSQLDatabaseException):
        connection.cursor().execute(message)
    assert not connection.is_idle
    connection.cursor().execute(ROLLBACK)
    assert connection.is_idle


def test_what_is_broken_off_half_way_stays_busy(driver: FakeDriver, connection: SqlServerConnection) -> None:
    driver.results = [[], KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        connection.cursor().execute("SELECT 1; SELECT 2")
    assert not connection.is_idle
    assert not connection.in_transaction


def test_a_value_that_can_not_be_sent_leaves_the_connection_as_it_was(
    driver: FakeDriver, connection: SqlServerConnection
) -> None:
    with pytest.raises(TypeError):
        connection.cursor().execute(f"{BEGIN}; SELECT ?", [object()])
    assert driver.sent == []
    assert connection.is_idle


def test_a_pooled_connection_is_alive_while_there_is_nothing_to_read(connection: SqlServerConnection) -> None:
    here, there = socket.socketpair()
    with here, there:
        assert connection.is_alive  # the number of its socket is not known
        connection.socket = here.fileno()
        assert connection.is_alive
        there.close()
        assert not connection.is_alive
    connection.raw.connected = False
    assert not connection.is_alive


def test_the_socket_is_learnt_and_an_earlier_wait_callback_goes_on(
    driver: FakeDriver, connection: SqlServerConnection
) -> None:
    told: list[int] = []
    _mssql.set_wait_callback(told.append)
    try:
        driver.wait = lambda: _mssql.wait_callback(42)
        with _Sockets() as mine:
            connection.cursor().execute("SELECT 1")
            other = threading.Thread(target=lambda: _mssql.wait_callback(43))
            other.start()
            other.join()
        assert mine.number == 42
        assert told == [42, 43]
        assert _mssql.wait_callback == told.append
    finally:
        _mssql.set_wait_callback(None)


def test_without_a_wait_callback_there_is_none_afterwards() -> None:
    with pytest.raises(RuntimeError), _Sockets():
        raise RuntimeError
    assert _mssql.wait_callback is None


@pytest.mark.parametrize(
    ("error", "at_risk", "kind", "outcome"),
    [
        (refusal(18456), False, StorageAccessError, Outcome.NOT_APPLIED),
        (refusal(40613), False, StorageConnectionError, Outcome.NOT_APPLIED),
        (refusal(40197), True, StorageConnectionError, Outcome.UNKNOWN),
        (refusal(50001), True, StorageError, Outcome.NOT_APPLIED),
        (_mssql.MSSQLDriverException("Not connected …"), True, StorageConnectionError, Outcome.UNKNOWN),
    ],
)
def test_errors_say_what_they_mean_and_whether_a_write_may_have_landed(
    error: Exception, at_risk: bool, kind: type[StorageError], outcome: Outcome
) -> None:
    found = DIALECT.translate(error, place="sqlserver://db/chat", at_risk=at_risk)
    assert type(found) is kind
    assert found.outcome is outcome


def test_losing_the_race_for_a_new_conversation_is_no_duplicate() -> None:
    raced = refusal(2627, "Violation of UNIQUE KEY constraint 'chat_conversation_identity'.")
    assert DIALECT.is_contention(raced)
    assert not DIALECT.is_duplicate(raced)
    repeated = refusal(2627, "Violation of UNIQUE KEY constraint 'chat_message_identity'.")
    assert DIALECT.is_duplicate(repeated)
    assert not DIALECT.is_contention(repeated)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlserver:///sa:secret@db/chat", "no host before its @"),
        ("sqlserver://sa@[::1]:1433/chat", "no IPv6 address"),
        ("sqlserver://sa@db\\instance/chat", "port of a named instance"),
    ],
)
def test_addresses_that_the_driver_would_read_otherwise_are_refused(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        check_address(OpenRequest(make_url(url), {}, "validate", False))
    assert "secret" not in str(caught.value)


class AnsweringTarget(SqlServerTarget):
    """One whose server answers PRODUCT with a given row."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        self._row = row

    @contextlib.contextmanager
    def _session(self) -> Iterator[Any]:
        yield self

    def _sql(self, statement: str) -> str:
        assert statement == self.PRODUCT
        return statement

    def row(self, _: str) -> tuple[Any, ...]:
        return self._row


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ((16, 3, "16.0.4135.4", None, "[chat]", 1), None),
        ((15, 2, "15.0.2000.5", None, "[chat]", 1), None),
        ((12, 5, "12.0.2000.8", None, "[chat]", 1), None),  # Azure SQL Database
        ((14, 3, "14.0.3456.2", None, "[chat]", 1), "SQL Server 14.0.3456.2, and chatkeep needs 2019"),
        ((None, 3, "10.50.1600.1", None, "[chat]", 1), "SQL Server 10.50.1600.1, and chatkeep needs 2019"),
        (
            (16, 3, "16.0.4135.4", None, "[my ]] chat]", 0),
            "ALTER DATABASE [my ]] chat] SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE",
        ),
        ((12, 2, "12.0.2000.8", "4.4.0", "[chat]", 1), "Babelfish 4.4.0, which passes over the locks"),
    ],
)
def test_a_server_that_can_not_keep_the_promises_is_refused(row: tuple[Any, ...], said: str | None) -> None:
    found = AnsweringTarget(row).check()
    assert found is None if said is None else said in str(found)
