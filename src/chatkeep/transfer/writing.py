"""Appends a stream to a repository in batches, and settles each conversation at its end. Reads no stream itself."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from chatkeep.conversation import Conversation
from chatkeep.errors import ConcurrentChangeError, InvalidMessageError, UnstorableValueError
from chatkeep.message import Message
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.record import NEVER, UNSET, Never, Unset
from chatkeep.transfer.reading import message_weight

BATCH_MESSAGES = 200
"""Messages in one append."""
BATCH_BYTES = 4 * 1024 * 1024
"""About what a batch may hold; one message may be larger."""


class Tally(msgspec.Struct):
    """What has gone through so far."""

    conversations: int = 0
    messages: int = 0
    """Messages that the target holds now, also those that it held before."""
    new: int = 0
    """Messages by which the target grew."""
    expired: int = 0
    """Messages left out since their life was over."""
    lines: int = 0
    """Lines read, of an import."""


Progress: TypeAlias = Callable[[Tally], None]


def no_progress(tally: Tally) -> None:
    """Says nothing."""


class PlacedError(InvalidMessageError):
    """Its text begins with the place, which may be an earlier one than the line that sent the batch off."""


class _Pending(msgspec.Struct):
    message: Message
    where: str


class Writer:
    """Appends messages in batches, one conversation after the other, and settles each conversation at its end."""

    def __init__(self, repository: ChatMemoryRepository, batch: int, tally: Tally, progress: Progress) -> None:
        self._repository = repository
        self._limit = batch
        self._tally = tally
        self._progress = progress
        self._id: str | None = None
        self._where = ""
        self._title: str | None = None
        self._metadata: dict[str, Any] = {}
        self._before = 0
        self._batch: list[_Pending] = []
        self._weight = 0
        self._expires_at: dt.datetime | Unset | None = None
        self._declared = False

    def conversation(self, conversation_id: str, title: str | None, metadata: dict[str, Any], where: str) -> None:
        if title is not None and not isinstance(title, str):
            raise TypeError(f"title: expected text or null, got {type(title).__name__}")
        if not isinstance(metadata, dict):
            raise TypeError(f"metadata: expected an object, got {type(metadata).__name__}")
        self._turn_to(conversation_id, where)
        self._declared, self._title, self._metadata = True, title, metadata

    def message(
        self, conversation_id: str, message: Message, expires_at: dt.datetime | Unset | None, where: str
    ) -> None:
        if conversation_id != self._id:
            self._turn_to(conversation_id, where)
        if self._batch and expires_at != self._expires_at:
            self._flush()
        self._expires_at = expires_at
        self._batch.append(_Pending(message, where))
        self._weight += message_weight(message)
        if len(self._batch) >= self._limit or self._weight >= BATCH_BYTES:
            self._flush()

    def finish(self) -> None:
        """Store what is pending and settle the last conversation."""
        self._flush()
        conversation_id, self._id = self._id, None
        if conversation_id is not None:
            self._settle(conversation_id)

    def _turn_to(self, conversation_id: str, where: str) -> None:
        self.finish()
        self._before = self._repository.count_messages(conversation_id)
        self._id, self._where = conversation_id, where
        self._declared, self._title, self._metadata = False, None, {}
        self._tally.conversations += 1

    def _flush(self) -> None:
        pending, self._batch, self._weight = self._batch, [], 0
        if not pending or self._id is None:
            return
        ttl: dt.timedelta | Never | None = None if self._expires_at is UNSET else NEVER
        if isinstance(self._expires_at, dt.datetime):
            ttl = self._expires_at - dt.datetime.now(dt.UTC)
            if ttl <= dt.timedelta(0):
                self._tally.expired += len(pending)
                return
        try:
            self._repository.append(self._id, [item.message for item in pending], ttl=ttl)
        except (InvalidMessageError, UnstorableValueError):
            # One of them is refused, and the batch with it: store those before it, and name the line.
            for item in pending:
                self._append_alone(self._id, item, ttl)
        except ValueError as exc:
            raise PlacedError(f"{pending[0].where}: {exc}") from exc
        else:
            self._tally.messages += len(pending)
        self._progress(self._tally)

    def _append_alone(self, conversation_id: str, item: _Pending, ttl: dt.timedelta | Never | None) -> None:
        try:
            self._repository.append(conversation_id, item.message, ttl=ttl)
        except (InvalidMessageError, UnstorableValueError) as exc:
            text = str(exc).removeprefix("messages[0]: ")
            raise PlacedError(f"{item.where}: {text}") from exc
        self._tally.messages += 1

    def _settle(self, conversation_id: str) -> None:
        stored = self._repository.get_conversation(conversation_id)
        if stored is None and self._declared:
            stored = self._create_empty(conversation_id)
        if stored is None:
            return
        self._tally.new += max(0, stored.message_count - self._before)
        title: str | Unset = UNSET
        metadata: dict[str, Any] | Unset = UNSET
        if self._title is not None and self._title != stored.title:
            title = self._title
        if self._metadata and self._metadata != stored.metadata:
            metadata = self._metadata
        if title is not UNSET or metadata is not UNSET:
            try:
                self._repository.update_conversation(conversation_id, title=title, metadata=metadata)
            except (ValueError, TypeError) as exc:
                raise PlacedError(f"{self._where}: {exc}") from exc
        self._progress(self._tally)

    def _create_empty(self, conversation_id: str) -> Conversation | None:
        expected = 0 if self._repository.capabilities.conditional_writes else None
        # Where another writer made it meanwhile, its messages stay.
        with contextlib.suppress(ConcurrentChangeError):
            self._repository.save_all(conversation_id, [], expected_version=expected)
        return self._repository.get_conversation(conversation_id)
