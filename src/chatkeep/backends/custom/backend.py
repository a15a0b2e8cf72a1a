"""StoreBackend: every verb of a backend by reading and saving whole conversations of a store of four verbs.

Written once for sync and async stores; calling.py knows the difference. What four verbs can't carry is refused.
"""

from __future__ import annotations

import bisect
import datetime as dt
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn

from chatkeep.backends.custom.calling import Caller, translated
from chatkeep.backends.custom.state import StoreState
from chatkeep.capabilities import Capabilities
from chatkeep.errors import (
    ConcurrentChangeError,
    InvalidMessageError,
    StorageError,
    StoredDataError,
    UnstorableValueError,
    UnsupportedOperationError,
)
from chatkeep.message import Message
from chatkeep.storage import codec
from chatkeep.storage.backend import Backend, DirectoryKey, Write, message_id_taken
from chatkeep.storage.record import ConversationRecord, MessageRecord, Purged, Unset

OWNER_END = "\x1f"
"""Stands between owner and id in a key. A control character, so no legal owner or id holds it."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class StoreBackend(Backend):
    """A person's store as a backend.

    A conversation is read and written under a lock of this process. Positions, versions and times of change are
    remembered by the process (state.py).
    """

    def __init__(
        self, name: str, caller: Caller, state: StoreState, capabilities: Capabilities, *, own_append: bool
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self.bridge = caller.bridge
        self._caller = caller
        self._state = state
        self._own_append = own_append

    # --- reads ---

    def find_conversation_ids(self, owner: str) -> list[str]:
        with self._caller.locked(self._state, ""):
            return self._ids(owner)

    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        stored = self._read(owner, conversation_id)
        start = 0 if limit is None else max(0, len(stored) - limit)
        return _records(stored[start:], conversation_id, start)

    def history(
        self, owner: str, conversation_id: str, after: int | None, before: int | None, limit: int
    ) -> list[MessageRecord]:
        key = _key(owner, conversation_id)
        with self._caller.locked(self._state, key):
            records = _records(self._stored(key, conversation_id), conversation_id)
            positions = self._state.seen(key, records).positions if records else ()
        for position, record in zip(positions, records, strict=True):
            record.position = position
        start = 0 if after is None else bisect.bisect_right(positions, after)
        end = len(positions) if before is None else max(start, bisect.bisect_left(positions, before))
        if after is None and before is not None:
            start = max(start, end - limit)
        return records[start : min(end, start + limit)]

    def count_messages(self, owner: str, conversation_id: str) -> int:
        return len(self._read(owner, conversation_id))

    def current_version(self, owner: str, conversation_id: str) -> int:
        key = _key(owner, conversation_id)
        with self._caller.locked(self._state, key):
            return self._version(owner, conversation_id, self._stored(key, conversation_id))

    def get_conversation(self, owner: str, conversation_id: str) -> ConversationRecord | None:
        key = _key(owner, conversation_id)
        with self._caller.locked(self._state, key):
            stored = self._stored(key, conversation_id)
            if not self._exists(owner, conversation_id, stored):
                return None
            seen = self._state.seen(key, _records(stored, conversation_id))
        return ConversationRecord(
            conversation_id, owner, None, None, seen.created_at, seen.updated_at, seen.version, len(stored)
        )

    def list_conversations(
        self, owner: str, order: Literal["id", "updated"], after: DirectoryKey | None, limit: int
    ) -> list[ConversationRecord]:
        ids = self.find_conversation_ids(owner)
        if order == "id":
            ids = [entry for entry in ids if after is None or entry > after.conversation_id][:limit]
        # None for what was deleted since the ids were read.
        found = [record for record in (self.get_conversation(owner, entry) for entry in ids) if record is not None]
        if order == "updated":
            found.sort(key=lambda record: (_EPOCH - record.updated_at, record.conversation_id))
            if after is not None and after.updated_at is not None:
                edge = (_EPOCH - after.updated_at, after.conversation_id)
                found = [record for record in found if (_EPOCH - record.updated_at, record.conversation_id) > edge]
        return found[:limit]

    # --- writes ---

    def append(self, write: Write, *, reconcile: bool = False) -> int:
        key = _key(write.owner, write.conversation_id)
        with self._caller.locked(self._state, key):
            stored = self._stored(key, write.conversation_id)
            before = _records(stored, write.conversation_id)
            new = _unstored(before, write)
            if not new:
                return self._state.seen(key, before).version
            self._check_version(write, stored)
            kept = self._state.seen(key, before).positions if stored else ()
            messages = _messages(new, write.conversation_id)
            if self._own_append:
                self._caller.call("append", key, messages)
            else:
                self._caller.call("save_all", key, [*stored, *messages])
            return self._state.wrote(key, [*before, *new], kept)

    def replace(self, write: Write) -> int:
        key = _key(write.owner, write.conversation_id)
        with self._caller.locked(self._state, key):
            if write.expected_version is not None or not self._state.knows(key):
                stored = self._stored(key, write.conversation_id)
                self._check_version(write, stored)
                if stored:  # dates the conversation, where it is new to this process
                    self._state.seen(key, _records(stored, write.conversation_id))
            self._caller.call("save_all", key, _messages(write.records, write.conversation_id))
            return self._state.wrote(key, write.records)

    def delete(self, owner: str, conversation_id: str) -> bool:
        key = _key(owner, conversation_id)
        with self._caller.locked(self._state, key):
            # By the list of ids: what can't be read can be deleted.
            there = conversation_id in self._ids(owner)
            if there:
                self._caller.call("delete_by_conversation_id", key)
            self._state.forget(key)
            return there

    def delete_messages(self, owner: str, conversation_id: str, message_ids: Sequence[str]) -> int:
        key = _key(owner, conversation_id)
        with self._caller.locked(self._state, key):
            stored = self._stored(key, conversation_id)
            gone = set(message_ids)
            kept = [index for index, message in enumerate(stored) if message.id not in gone]
            if len(kept) < len(stored):
                before = _records(stored, conversation_id)
                positions = self._state.seen(key, before).positions
                self._caller.call("save_all", key, [stored[index] for index in kept])
                self._state.wrote(key, [before[index] for index in kept], [positions[index] for index in kept])
            return len(stored) - len(kept)

    # --- refused ---

    def update_conversation(
        self, owner: str, conversation_id: str, title: str | Unset | None, metadata: str | Unset | None
    ) -> ConversationRecord | None:
        self._refuse("conversation_metadata")

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    def purge_expired(self, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
        self._refuse("purge")

    def purge_idle(self, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
        self._refuse("purge")

    def close(self) -> None:
        self._caller.call("close")

    # --- steps ---

    def _read(self, owner: str, conversation_id: str) -> list[Message]:
        key = _key(owner, conversation_id)
        with self._caller.locked(self._state, key):
            return self._stored(key, conversation_id)

    # --- steps within a lock ---

    def _stored(self, key: str, conversation_id: str) -> list[Message]:
        try:
            return self._list("find_by_conversation_id", Message, key)
        except (InvalidMessageError, UnstorableValueError) as exc:
            # From Message.from_dict in the store: what lies there is no message.
            raise StoredDataError(f"unreadable message: {exc}", conversation_id=conversation_id, position=0) from exc

    def _ids(self, owner: str) -> list[str]:
        found = self._list("find_conversation_ids", str)
        if not owner:
            return sorted({key for key in found if OWNER_END not in key})
        prefix = owner + OWNER_END
        return sorted({key.removeprefix(prefix) for key in found if key.startswith(prefix)})

    def _list(self, verb: str, kind: type, *arguments: str) -> list[Any]:
        found = self._caller.call(verb, *arguments)
        if isinstance(found, Iterable) and not isinstance(found, (str, bytes)):
            with translated(self.name, verb):
                items = list(found)  # runs the store's code, where it is a generator
            if all(type(item) is kind for item in items):
                return items
        raise StorageError(
            f"the {self.name} store's {verb} has to return a list of {kind.__name__}, and didn't", backend=self.name
        )

    def _exists(self, owner: str, conversation_id: str, stored: Sequence[object]) -> bool:
        return bool(stored) or conversation_id in self._ids(owner)

    def _version(self, owner: str, conversation_id: str, stored: list[Message]) -> int:
        if not self._exists(owner, conversation_id, stored):
            return 0
        return self._state.seen(_key(owner, conversation_id), _records(stored, conversation_id)).version

    def _check_version(self, write: Write, stored: list[Message]) -> None:
        if write.expected_version is None:
            return
        actual = self._version(write.owner, write.conversation_id, stored)
        if actual != write.expected_version:
            raise ConcurrentChangeError(write.conversation_id, expected=write.expected_version, actual=actual)

    def _refuse(self, capability: str) -> NoReturn:
        raise UnsupportedOperationError(f"the {self.name} store has four verbs and does not offer {capability!r}")


def _key(owner: str, conversation_id: str) -> str:
    return f"{owner}{OWNER_END}{conversation_id}" if owner else conversation_id


def _records(messages: Sequence[Message], conversation_id: str, start: int = 0) -> list[MessageRecord]:
    """The records of the stored messages that follow the first `start`."""
    records = []
    for place, message in enumerate(messages, start + 1):
        try:
            record = codec.encode(message, "message", sys.maxsize)
        except (InvalidMessageError, TypeError) as exc:
            raise StoredDataError(
                f"unreadable message: {exc}", conversation_id=conversation_id, position=place
            ) from exc
        records.append(record)
    return records


def _messages(records: Sequence[MessageRecord], conversation_id: str) -> list[Message]:
    """Messages that the caller of the repository doesn't hold, so that the store may keep them."""
    return [codec.decode(record, conversation_id) for record in records]


def _unstored(stored: Sequence[MessageRecord], write: Write) -> list[MessageRecord]:
    known = {record.message_id: record for record in stored}
    new = []
    for record in write.records:
        earlier = known.get(record.message_id)
        if earlier is None:
            new.append(record)
        elif not codec.same_content(earlier, record):
            raise message_id_taken(record.message_id, write.conversation_id)
    return new
