"""Walks through conversations in pages of bounded memory, and the lines of an export. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from chatkeep.conversation import Conversation, HistoryEntry
from chatkeep.errors import ConversationNotFoundError
from chatkeep.message import Media, Message, Opaque, Part, ToolCall, ToolResult
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.jsontext import dump_json
from chatkeep.times import format_time

PAGE_BYTES = 4 * 1024 * 1024
"""About what a page may hold in memory; one message may be larger."""
PAGE_CONVERSATIONS = 200

Item: TypeAlias = Conversation | tuple[str, HistoryEntry]
"""What a walk gives: a conversation, then (its id, entry) for each of its messages."""


def walk(repository: ChatMemoryRepository, conversation_ids: Iterable[str] | None = None) -> Iterator[Item]:
    """Every conversation of the repository's owner, or those named, each followed by its messages, oldest first.

    Raises ConversationNotFoundError for a named one that does not exist.
    """
    for conversation in chosen(repository, conversation_ids):
        yield conversation
        for entry in entries(repository, conversation.id):
            yield conversation.id, entry


def entries(
    repository: ChatMemoryRepository, conversation_id: str, *, after: int | None = None
) -> Iterator[HistoryEntry]:
    """The messages of one conversation behind a position, read in pages that hold about PAGE_BYTES."""
    limit = 50
    cursor: int | str | None = after
    while True:
        page = repository.history(conversation_id, after=cursor, limit=limit)
        yield from page.items
        if page.next_cursor is None:
            return
        cursor = page.next_cursor
        weight = sum(message_weight(entry.message) for entry in page.items)
        limit = min(1000, limit * 2, max(1, limit * PAGE_BYTES // max(1, weight)))


def conversations(repository: ChatMemoryRepository) -> Iterator[Conversation]:
    """Every conversation of the repository's owner, by id."""
    cursor = None
    while True:
        page = repository.list_conversations(limit=PAGE_CONVERSATIONS, cursor=cursor)
        yield from page.items
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


def chosen(repository: ChatMemoryRepository, ids: Iterable[str] | None) -> Iterator[Conversation]:
    """Those named, or all. Raises ConversationNotFoundError for a named one that does not exist."""
    if ids is None:
        yield from conversations(repository)
        return
    for conversation_id in dict.fromkeys(ids):
        conversation = repository.get_conversation(conversation_id)
        if conversation is None:
            raise ConversationNotFoundError(f"conversation {conversation_id!r} does not exist")
        yield conversation


def message_weight(message: Message) -> int:
    """About the bytes that a message takes, without encoding it; at least 200."""
    return 200 + sum(_part_weight(part) for part in message.parts)


def _part_weight(part: Part) -> int:
    if isinstance(part, Media):
        return 100 + len(part.data or part.url or b"")
    if isinstance(part, ToolCall):
        return 100 + len(part.arguments)
    if isinstance(part, ToolResult):
        return 100 + (
            len(part.content) if isinstance(part.content, str) else sum(_part_weight(inner) for inner in part.content)
        )
    if isinstance(part, Opaque):
        return 100 + len(dump_json(part.data))
    return 100 + len(part.text)


def export_lines(
    repository: ChatMemoryRepository, conversation_ids: Iterable[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of an export as dicts of JSON values; `encode_line` makes text of one."""
    for item in walk(repository, conversation_ids):
        yield conversation_line(item) if isinstance(item, Conversation) else message_line(*item)


def conversation_line(conversation: Conversation) -> dict[str, Any]:
    """The line of a conversation."""
    return {
        "type": "conversation",
        "id": conversation.id,
        "title": conversation.title,
        "metadata": conversation.metadata,
        "created_at": format_time(conversation.created_at),
        "updated_at": format_time(conversation.updated_at),
    }


def message_line(conversation_id: str, entry: HistoryEntry) -> dict[str, Any]:
    """The line of a message."""
    return {
        "type": "message",
        "conversation_id": conversation_id,
        "expires_at": None if entry.expires_at is None else format_time(entry.expires_at),
        "message": entry.message.to_dict(),
    }


def encode_line(line: dict[str, Any]) -> bytes:
    """One line of JSON Lines in UTF-8, with its line end."""
    return dump_json(line).encode() + b"\n"
