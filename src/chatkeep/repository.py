"""ChatMemoryRepository: the one interface, with the contract in prose on each method.

AsyncChatMemoryRepository (async_repository.py) has the same methods, awaited. Both are thin: storage/repository.py
checks and encodes, storage/runner.py runs, a backend stores.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

from chatkeep.capabilities import Capabilities
from chatkeep.conversation import Conversation, HistoryEntry, Page, PurgeReport
from chatkeep.errors import InvalidOwnerError, RepositoryClosedError
from chatkeep.message import Message
from chatkeep.storage.record import UNSET, Never, Unset
from chatkeep.storage.repository import Calls
from chatkeep.storage.runner import AsyncRunner, Call, SyncRunner

T = TypeVar("T")
R = TypeVar("R", bound="SyncRunner | AsyncRunner")


class RepositoryBase(Generic[R]):
    """What the sync and the async class share: owner scope, capabilities, life cycle."""

    def __init__(self, calls: Calls, runner: R, root: RepositoryBase[R] | None = None) -> None:
        self._unchecked = calls
        self._runner = runner
        self._root = root
        self._closed = False
        self._vector_stores: list[Any] = [] if root is None else root._vector_stores
        """Stores of vectors elsewhere, which forget a conversation that is deleted here."""

    @property
    def _calls(self) -> Calls:
        # Before the arguments are looked at: of a closed repository nothing else matters.
        self._check_open()
        return self._unchecked

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do; each field is a sentence."""
        return self._unchecked.capabilities

    @property
    def backend(self) -> str:
        """The backend's name: `sqlite`, `postgresql`, …"""
        return self._unchecked.backend.name

    @property
    def owner(self) -> str:
        """The owner whose conversations this handle sees; `""` when nobody is named."""
        return self._unchecked.owner

    def for_owner(self, owner: str) -> Self:
        """A handle on the conversations of `owner` alone, over the same connections. No I/O.

        A conversation is identified by (owner, conversation id): no call of the handle can see or change another
        owner's data. Closing the handle leaves this repository open; closing this repository closes the handle.
        A handle that has an owner can't name another one.

        Raises InvalidOwnerError for what is no str of up to 255 characters, or where this handle already belongs to
        another owner.
        """
        self._check_open()
        calls = self._calls.for_owner(owner)
        if self.owner not in ("", owner):
            raise InvalidOwnerError(f"this handle belongs to owner {self.owner!r} and can't name another")
        return type(self)(calls, self._runner, self._root or self)

    def _forget_vectors_in(self, store: Any) -> None:
        """From now on, of all handles on these connections, a deletion is one there too."""
        if not any(known is store for known in self._vector_stores):
            self._vector_stores.append(store)

    def _check_open(self) -> None:
        if self._closed or (self._root is not None and self._root._closed):
            raise RepositoryClosedError(f"this {self.backend} repository is closed; open a new one")

    def __repr__(self) -> str:
        state = " closed" if self._closed else ""
        return f"<{type(self).__name__} {self.backend} owner={self.owner!r}{state}>"


class ChatMemoryRepository(RepositoryBase[SyncRunner]):
    """Conversations in one database, for one owner. Open one with `open_repository`; use it from any thread.

    Every method raises InvalidConversationIdError for an id that is no str of 1 to 255 characters without control
    characters and white space at the ends, RepositoryClosedError after `close`, and StorageError where the engine
    fails: its `outcome` tells whether a write may have landed. Contention and broken connections are retried inside
    where repeating is safe. Returned lists and messages are the caller's own.
    """

    def find_conversation_ids(self) -> list[str]:
        """Every conversation id of this owner, in the order of the engine's binary comparison.

        Also ids without live messages: only a deletion or a purge removes an id. For many, `list_conversations`.
        """
        return self._run(self._calls.find_conversation_ids())

    def find_by_conversation_id(self, conversation_id: str, *, limit: int | None = None) -> list[Message]:
        """The messages of a conversation, oldest first; with `limit` the newest so many of them.

        One read, of one moment: never a part of an append or of a `save_all`. Expired messages are left out. An
        unknown id gives `[]`. The cost depends on what is returned, not on the length of the conversation.

        Raises ValueError for a negative limit, StoredDataError for a row that can't be read (with
        `open_repository(on_unreadable="keep")` it is a message with one Opaque part instead).
        """
        return self._run(self._calls.find_by_conversation_id(conversation_id, limit))

    def save_all(
        self,
        conversation_id: str,
        messages: Iterable[Message],
        *,
        expected_version: int | None = None,
        ttl: dt.timedelta | Never | None = None,
    ) -> int:
        """Replace all messages of a conversation in one step, creating it if need be; returns the new version.

        Readers see the old list or the new one. Everything is encoded and checked before the first statement, and on
        any error the old list stays. `[]` leaves an empty conversation that is still listed. Title, metadata and
        creation time of the conversation stay. Calling it twice with the same list is the same as once. An id that
        stands twice in the list with the same content is stored once.

        `expected_version`: the version the list was based on, 0 for a conversation that must not exist yet; another
        one raises ConcurrentChangeError and writes nothing. After a lost reply such a call is not repeated inside:
        StorageError with outcome UNKNOWN.
        `ttl`: the life of every message from now on, or `NEVER`. Without it, ids that were stored keep their expiry
        and new ones get the repository's.

        Raises InvalidMessageError (ValueError), UnstorableValueError (TypeError) or MessageTooLargeError, each with
        the path of the value, before any I/O.
        """
        return self._run(self._calls.save_all(conversation_id, messages, expected_version, ttl))

    def delete_by_conversation_id(self, conversation_id: str) -> bool:
        """Delete a conversation with all that belongs to it, in one step; True if there was something.

        Afterwards its id starts empty, with versions and positions that were never used. Idempotent: an unknown id
        gives False. Where the reply was lost and the call was repeated inside, True stands for "it is gone now".
        """
        deleted = self._run(self._calls.delete_by_conversation_id(conversation_id))
        for store in self._vector_stores:
            store.remove(self.owner, conversation_id, None)
        return deleted

    def append(
        self,
        conversation_id: str,
        messages: Message | Iterable[Message],
        *,
        expected_version: int | None = None,
        ttl: dt.timedelta | Never | None = None,
    ) -> int:
        """Add one message or many at the end, creating the conversation if need be; returns the new version.

        All or none: readers see all messages of the call or none of them. Parallel appends all survive, each call's
        messages side by side and in order. Order is by a position that the write allocates, never by time. No
        messages is a no-op that returns the current version, 0 for an unknown id.

        Idempotent by message id: a message whose id is stored with the same content (role, parts, name, metadata) is
        not stored again, and a call whose messages are all stored returns the current version, also with a stale
        `expected_version`. So a repeated call after an unknown outcome is safe, and is done inside. The same id with
        another content raises InvalidMessageError and stores nothing.

        `expected_version`: 0 for a conversation that must not exist yet, or the version the caller has seen; another
        one raises ConcurrentChangeError, which names both, and writes nothing.
        `ttl`: the life of these messages, instead of the repository's; `NEVER` for none.

        Raises TypeError for a `str` in place of messages; InvalidMessageError (ValueError), UnstorableValueError
        (TypeError) or MessageTooLargeError, each with the path of the value, before any I/O.
        """
        return self._run(self._calls.append(conversation_id, messages, expected_version, ttl))

    def history(
        self,
        conversation_id: str,
        *,
        after: int | str | None = None,
        before: int | str | None = None,
        limit: int = 100,
    ) -> Page[HistoryEntry]:
        """A page of stored messages with their positions, always in ascending order.

        Without bounds it starts at the oldest; `after=p` gives the nearest above p, `before=p` the nearest below p,
        both together what lies between, from p upwards. To page from the newest backwards, begin with
        `before=2**63 - 1`. `next_cursor` goes on in the same direction: give it as `after` (or as `before`, where
        `before` alone was given). It is None at the end, and pages stay stable while others write. `limit=0` is an
        empty page, an unknown id too. Expired messages are left out.
        """
        return self._run(self._calls.history(conversation_id, after, before, limit))

    def count_messages(self, conversation_id: str) -> int:
        """How many live messages a conversation has; 0 for an unknown id. Doesn't count row by row."""
        return self._run(self._calls.count_messages(conversation_id))

    def delete_messages(self, conversation_id: str, message_ids: Iterable[str]) -> int:
        """Delete some messages by id, in one step; returns how many live ones were deleted.

        Ids that are not there are passed over. The version grows if anything was deleted. An emptied conversation
        stays listed. After a lost reply it is not repeated inside: StorageError with outcome UNKNOWN.
        """
        return self._run(self._calls.delete_messages(conversation_id, message_ids))

    def get_conversation(self, conversation_id: str) -> Conversation | None:
        """The conversation's directory entry, or None for an unknown id."""
        return self._run(self._calls.get_conversation(conversation_id))

    def update_conversation(
        self,
        conversation_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
    ) -> Conversation:
        """Set title, metadata or both; what isn't given stays. Returns the conversation as it is then.

        Metadata (a JSON object) is replaced as a whole. Neither version nor `updated_at` change. The title has up to
        255 characters; None removes it.

        Raises ConversationNotFoundError for an unknown id, ValueError for a title that is too long.
        """
        return self._run(self._calls.update_conversation(conversation_id, title, metadata))

    def list_conversations(
        self, *, limit: int = 100, cursor: str | None = None, order: Literal["id", "updated"] = "id"
    ) -> Page[Conversation]:
        """A page of this owner's conversations, by id or the last changed first.

        `cursor` is the `next_cursor` of the page before, in the same order. Pages are stable while others write: a
        conversation that doesn't change meanwhile appears exactly once.

        Raises ValueError for a negative limit, an unknown order or a foreign cursor.
        """
        return self._run(self._calls.list_conversations(limit, cursor, order))

    def purge_expired(self, *, batch_size: int = 1000, dry_run: bool = False) -> PurgeReport:
        """Delete this owner's expired messages physically, up to `batch_size` in a transaction, until none is left.

        A conversation that held nothing but expired messages is removed with them. Reads never see expired messages,
        purged or not. With `dry_run` only count.
        """
        return self._run(self._calls.purge_expired(batch_size, dry_run))

    def purge_idle(self, older_than: dt.timedelta, *, batch_size: int = 1000, dry_run: bool = False) -> PurgeReport:
        """Delete this owner's conversations whose messages have not changed for longer than `older_than`.

        Each conversation goes as a whole, and only if it is still idle at that moment; a transaction takes up to
        `batch_size` conversations. Title and metadata changes are no activity. With `dry_run` only count.
        """
        return self._run(self._calls.purge_idle(older_than, batch_size, dry_run))

    def close(self) -> None:
        """Release the connections; more calls do nothing. An owner's handle only closes itself."""
        if not self._closed:
            self._closed = True
            if self._root is None:
                self._runner.close()
                self._unchecked.backend.close()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, call: Call[T]) -> T:
        return self._runner.run(call)
