"""What the directory and the history return: Conversation, HistoryEntry, Page, PurgeReport. Values, no behaviour."""

from __future__ import annotations

import datetime as dt
from typing import Any, Generic, TypeVar

import msgspec

from chatkeep.message import Message

T = TypeVar("T")


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation as it was when it was read."""

    id: str
    owner: str
    title: str | None = None
    metadata: dict[str, Any] = {}
    created_at: dt.datetime
    """When its first write happened; aware, UTC. `save_all` does not change it."""
    updated_at: dt.datetime
    """The last change of its messages; aware, UTC. Title and metadata changes do not count."""
    version: int
    """Grows with every change of the messages while the conversation lives, and is never used again, also not after a
    deletion under the same id. A conversation made anew has higher ones, unless two made it at the same time and one of
    them waited through the life and the deletion of the other's."""
    message_count: int
    """Live messages: those that have not expired."""


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One stored message with what the store knows about it."""

    position: int
    """Orders the conversation; grows, may have gaps, and is never used again."""
    message: Message
    expires_at: dt.datetime | None = None
    """When the message becomes invisible; aware, UTC. None: never."""
    token_count: int | None = None
    """Tokens as an estimator counted them, where one did."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a longer list. `next_cursor` is opaque and asks for the next part; None at the end."""

    items: list[T]
    next_cursor: str | None = None


class PurgeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a purge removed, or would remove with `dry_run=True`."""

    messages: int
    """Messages deleted physically."""
    conversations: int
    """Conversations that were removed as a whole, so that their id is no longer listed."""
    dry_run: bool
