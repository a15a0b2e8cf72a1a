"""What a backend fills in: verbs over records. The public docstrings of repository.py are the contract of each.

A verb is written once, as plain synchronous code. `Backend.bridge` says how the async repository runs it: `greenlet`
for engines with an asynchronous driver (the verb then awaits inside, through SQLAlchemy's `await_only`), `thread`
for embedded ones, `inline` where nothing blocks. Verbs never retry; storage/runner.py does.
"""

from __future__ import annotations

import abc
import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from chatkeep.capabilities import Capabilities
from chatkeep.errors import InvalidMessageError, UnsupportedOperationError
from chatkeep.storage.record import ContextRecord, ConversationRecord, MessageRecord, Purged, Ttl, Unset

if TYPE_CHECKING:
    from chatkeep.storage.vectors import VectorTables

Bridge = Literal["greenlet", "thread", "inline"]


ContextChange = Literal["ignore", "extend", "restart"]


class Write(msgspec.Struct, frozen=True):
    """One append or replacement: encoded, checked, ready to be stored."""

    owner: str
    conversation_id: str
    records: list[MessageRecord]
    ttl: Ttl
    expected_version: int | None = None
    context: ContextChange = "ignore"
    """Of an append, what it does to the context of the conversation's memories.

    "ignore": nothing; an id that is stored anywhere in the conversation is stored.
    "extend": an id that is stored outside of the context moves to the end: it is deleted where it was and appended
    anew. Outside lies what is at or before the context's start, and a system message that a newer one replaced.
    "restart": as one step, the context begins behind everything that is stored, and then as "extend". Also with no
    records: then a conversation that doesn't exist is not made, and version 0 returned.

    A moved message must have the content of the stored one (`message_id_taken` else). Both need the capability
    `context`.
    """

    @property
    def system_offset(self) -> int | None:
        """The index of the newest system message in `records`."""
        for index in range(len(self.records) - 1, -1, -1):
            if self.records[index].role in SYSTEM_ROLES:
                return index
        return None


SYSTEM_ROLES = ("system", "developer")
"""Role `developer` counts as system (OpenAI's newer name for it)."""


class DirectoryKey(msgspec.Struct, frozen=True):
    """Where a page of the directory goes on: behind this conversation."""

    conversation_id: str
    updated_at: dt.datetime | None = None
    """Set for order "updated"."""


def message_id_taken(message_id: str, conversation_id: str) -> InvalidMessageError:
    """The error of a message id that is stored with another content."""
    return InvalidMessageError(
        f"message id {message_id!r} is stored in conversation {conversation_id!r} with another content; "
        f"give the new message an id of its own"
    )


class Backend(abc.ABC):
    """The verbs of one engine. `owner` is always given; `Write.records` is empty for an append that restarts only."""

    name: str
    capabilities: Capabilities
    bridge: Bridge

    @abc.abstractmethod
    def find_conversation_ids(self, owner: str) -> list[str]: ...

    @abc.abstractmethod
    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        """Live messages, oldest first; with a limit (at least 1) the newest of them."""

    @abc.abstractmethod
    def append(self, write: Write, *, reconcile: bool = False) -> int:
        """Returns the version. `reconcile` is given when an earlier try may have landed."""

    @abc.abstractmethod
    def replace(self, write: Write) -> int: ...

    @abc.abstractmethod
    def current_version(self, owner: str, conversation_id: str) -> int:
        """0 where the conversation does not exist."""

    @abc.abstractmethod
    def delete(self, owner: str, conversation_id: str) -> bool: ...

    @abc.abstractmethod
    def history(
        self, owner: str, conversation_id: str, after: int | None, before: int | None, limit: int
    ) -> list[MessageRecord]:
        """Live messages with after < position < before, ascending: with `after` or no bound the lowest `limit` of
        them, with `before` alone the highest."""

    def find_context(self, owner: str, conversation_id: str, limit: int, before: int | None = None) -> ContextRecord:
        """The newest `limit` (at least 1) live messages of the context, those below position `before` where it is
        given, and the newest system message: of one moment, at a cost that doesn't depend on the conversation's length.

        This default is correct for a backend without the capability `context`, and reads the whole.
        """
        records = self.history(owner, conversation_id, None, None, 2**31 - 1)
        systems = [record for record in records if record.role in SYSTEM_ROLES]
        below = [record for record in records if before is None or record.position < before]
        version = self.current_version(owner, conversation_id)
        return ContextRecord(below[-limit:], systems[-1] if systems else None, version)

    def store_token_counts(self, owner: str, conversation_id: str, estimator: str, counts: dict[int, int]) -> None:
        """Keep the token counts of the messages at these positions, under the estimator's name and version.

        A cache: positions that are gone are passed over, and the version does not change. This default keeps nothing.
        """
        return

    @abc.abstractmethod
    def count_messages(self, owner: str, conversation_id: str) -> int: ...

    @abc.abstractmethod
    def delete_messages(self, owner: str, conversation_id: str, message_ids: Sequence[str]) -> int: ...

    @abc.abstractmethod
    def get_conversation(self, owner: str, conversation_id: str) -> ConversationRecord | None: ...

    @abc.abstractmethod
    def update_conversation(
        self, owner: str, conversation_id: str, title: str | Unset | None, metadata: str | Unset | None
    ) -> ConversationRecord | None:
        """None where the conversation does not exist."""

    @abc.abstractmethod
    def list_conversations(
        self, owner: str, order: Literal["id", "updated"], after: DirectoryKey | None, limit: int
    ) -> list[ConversationRecord]: ...

    @abc.abstractmethod
    def now(self) -> dt.datetime:
        """The present time of the clock that expiry goes by: the server's, where there is one."""

    @abc.abstractmethod
    def purge_expired(self, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
        """One batch of what had expired `before`; with `dry_run` the whole, counted and not deleted."""

    @abc.abstractmethod
    def purge_idle(self, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
        """One batch of what last changed `before`; with `dry_run` the whole, counted and not deleted."""

    def vectors(self, model: str, distance: str | None) -> VectorTables:
        """The tables of a model's vectors, without I/O. `distance`: the user's choice where the engine has one.

        This default refuses: the backend has none.
        """
        raise UnsupportedOperationError(
            f"the {self.name} backend keeps no vectors beside its messages; give a store, such as "
            f"VectorMemory(…, store=InProcessVectorStore())"
        )

    def describe(self) -> dict[str, str]:
        """Driver and server with their versions, for `chatkeep doctor`: keys "driver" and "server"."""
        return {}

    @abc.abstractmethod
    def close(self) -> None:
        """Release connections. Called once."""
