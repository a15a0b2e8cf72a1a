"""What memories ask of a backend beyond the repository's methods: the context of a conversation, read and moved.

Prepares calls like repository.py, for the same runners.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from chatkeep.errors import StorageError
from chatkeep.message import Message
from chatkeep.storage.backend import ContextChange, Write
from chatkeep.storage.checks import MOST, effective_ttl
from chatkeep.storage.record import ContextRecord, MessageRecord
from chatkeep.storage.repository import Calls
from chatkeep.storage.runner import Call

T = TypeVar("T")


class Counted(msgspec.Struct, frozen=True):
    """Token counts by message id, and the estimator that made them, by name and version."""

    estimator: str
    counts: Mapping[str, int]


class Context:
    """The newest part of a conversation's context as it was at one moment."""

    def __init__(self, calls: Calls, conversation_id: str, found: ContextRecord, asked: int) -> None:
        self._calls = calls
        self._conversation_id = conversation_id
        self.version = found.version
        self.start = found.start
        """The position behind which the context begins."""
        self.records = found.messages
        self.messages = calls.decode(conversation_id, found.messages)
        """Oldest first."""
        self.system_record = found.system
        self.system = None if found.system is None else calls.decode(conversation_id, [found.system])[0]
        """The newest system message of the context, which may lie before these messages or be among them."""
        self.whole = len(found.messages) < asked
        """Whether no message of the context lies before these."""

    def extend(self, older: ContextRecord, asked: int) -> None:
        """Put older messages in front."""
        self.records = older.messages + self.records
        self.messages = self._calls.decode(self._conversation_id, older.messages) + self.messages
        self.whole = len(older.messages) < asked

    def count(self, estimator: str, count_message: Callable[[Message], int]) -> tuple[dict[str, int], dict[int, int]]:
        """All messages' counts by id, and by position those that were made now, since none of the estimator was stored.

        A message's count is kept in its record: counting again after `extend` counts what is new.
        """
        counts: dict[str, int] = {}
        fresh: dict[int, int] = {}

        def count(record: MessageRecord, message: Message) -> MessageRecord:
            if message.id in counts:
                return record
            if record.token_count is None or record.token_estimator != estimator:
                tokens = count_message(message)
                # A copy: the record may be the backend's own.
                record = msgspec.structs.replace(record, token_count=tokens, token_estimator=estimator)
                fresh[record.position] = tokens
            counts[message.id] = record.token_count or 0
            return record

        self.records = [count(*pair) for pair in zip(self.records, self.messages, strict=True)]
        if self.system_record is not None and self.system is not None:
            self.system_record = count(self.system_record, self.system)
        return counts, fresh


def read_context(
    calls: Calls,
    conversation_id: str,
    first: int,
    decide: Callable[[Context], T | None],
    more: Callable[[Context], int],
) -> Call[T]:
    """What `decide` makes of the newest part of the context: `first` messages of it, and older ones in blocks of
    `more(context)` until it decides. It must decide where `context.whole`.

    All that it sees is of one moment: where the conversation changed between two blocks, the reading begins anew, with
    one statement for as much as was needed.
    """

    def work(_: bool) -> T:
        find, owner = calls.backend.find_context, calls.owner
        limit = min(first, MOST)
        while True:
            context = Context(calls, conversation_id, find(owner, conversation_id, limit), limit)
            while True:
                decided = decide(context)
                if decided is not None:
                    return decided
                assert not context.whole, "undecided although nothing lies before"
                block = min(max(more(context), 1), MOST)
                older = find(owner, conversation_id, block, context.records[0].position)
                if older.version != context.version:
                    limit = min(len(context.records) + block, MOST)
                    break
                context.extend(older, block)

    return Call(work, repeatable=True)


def store_counts(calls: Calls, conversation_id: str, estimator: str, counts: dict[int, int]) -> None:
    """Within a call: cache token counts by position. Where the engine refuses (a read-only account), they are counted
    again next time."""
    if counts and calls.capabilities.token_counts:
        with contextlib.suppress(StorageError):
            calls.backend.store_token_counts(calls.owner, conversation_id, estimator, counts)


def extend_context(
    calls: Calls,
    conversation_id: str,
    messages: Iterable[Message],
    counted: Counted | None = None,
    *,
    restart: bool = False,
    expected_version: int | None = None,
) -> Call[int]:
    """Append messages; what left the context moves to the end. With `restart`, and only then messages may be none, the
    context begins behind all that is stored, and a conversation that doesn't exist is not made for no messages. Gives
    the version."""
    if restart:
        calls._require("context")
    change: ContextChange = "restart" if restart else "extend" if calls.capabilities.context else "ignore"
    plain = calls._write(conversation_id, messages, expected_version, None)
    write = msgspec.structs.replace(plain, context=change, records=with_counts(plain.records, counted))
    return Call(lambda again: calls.backend.append(write, reconcile=again), repeatable=True)


def keep_only(
    calls: Calls, conversation_id: str, records: list[MessageRecord], version: int, *, appended: int | None = None
) -> Call[int]:
    """Store exactly these, unless the conversation changed since `version` (ConcurrentChangeError). Ids that were
    stored keep their expiry. `appended`: so many at the end are new and all others lie stored as they stand here, so
    that an append is enough."""
    calls._require("conditional_writes")
    write = Write(calls.owner, conversation_id, records, effective_ttl(None, calls.ttl), version)
    if appended is None:
        return Call(lambda _: calls.backend.replace(write), repeatable=False)
    write = msgspec.structs.replace(write, records=records[len(records) - appended :])
    return Call(lambda again: calls.backend.append(write, reconcile=again), repeatable=True)


def with_counts(records: list[MessageRecord], counted: Counted | None) -> list[MessageRecord]:
    """The records with their token counts."""
    for record in records if counted is not None else ():
        assert counted is not None
        record.token_count, record.token_estimator = counted.counts.get(record.message_id), counted.estimator
    return records
