"""Several statements in one message: what travels together on engines that take it, and what never does."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from chatkeep.backends.relational import writes
from chatkeep.backends.relational.mysql import MysqlDialect
from chatkeep.backends.relational.session import Session
from chatkeep.storage.backend import Ttl, Write
from chatkeep.storage.record import MessageRecord

NOW = dt.datetime(2026, 1, 1)


class Cursor:
    """Notes each message; the lock finds a conversation with three messages."""

    def __init__(self) -> None:
        self.messages: list[list[str]] = []
        self.rowcount = 1

    def execute(self, text: str, values: Sequence[Any] | None = None) -> None:
        self.messages.append([" ".join(part.split()[:3]) for part in text.split("; ")])
        assert text.count("%s") == len(values or ()), text

    def fetchone(self) -> Any:
        return (7, 3, 3, None, 0, 3, None, NOW)

    def fetchall(self) -> list[Any]:
        return []

    def close(self) -> None: ...


@pytest.fixture
def cursor() -> Cursor:
    return Cursor()


@pytest.fixture
def session(cursor: Cursor) -> Session:
    session = Session(MysqlDialect())
    session.open(cursor)
    return session


def record(number: int, text: str = "text") -> MessageRecord:
    return MessageRecord(f"id-{number}", "user", text, None, NOW.replace(tzinfo=dt.UTC), None, None, 0)


def write(*records: MessageRecord) -> Write:
    return Write("", "c", list(records), Ttl(None, explicit=False))


def test_an_append_is_two_messages(session: Session, cursor: Cursor) -> None:
    writes.append(session, write(record(1), record(2)), reconcile=False)
    assert cursor.messages == [
        ["BEGIN", "SELECT conversation_key, version,"],
        ["INSERT INTO chat_message", "UPDATE chat_conversation SET", "COMMIT"],
    ]


def test_a_replacement_is_two_messages(session: Session, cursor: Cursor) -> None:
    writes.replace(session, write(record(1)))
    assert cursor.messages[1:] == [
        ["DELETE FROM chat_message", "INSERT INTO chat_message", "UPDATE chat_conversation SET", "COMMIT"]
    ]


def test_a_message_holds_the_rows_of_one_insert_at_most(session: Session, cursor: Cursor) -> None:
    """Or many large messages would meet the server's limit for one."""
    half = "x" * (session.dialect.bytes_per_insert // 2 + 1)
    writes.append(session, write(*(record(number, half) for number in range(3))), reconcile=False)
    inserts = [message.count("INSERT INTO chat_message") for message in cursor.messages]
    assert inserts == [0, 1, 1, 1]
    assert cursor.messages[-1][-1] == "COMMIT"


def test_what_was_queued_is_not_sent_by_a_rollback(session: Session, cursor: Cursor) -> None:
    with pytest.raises(ZeroDivisionError), session.transaction():
        raise ZeroDivisionError
    assert cursor.messages == []
    session.roll_back()
    assert cursor.messages == [["ROLLBACK"]]
