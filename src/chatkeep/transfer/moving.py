"""Import of lines and copies between repositories. Knows no terminal and no files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from chatkeep.conversation import Conversation
from chatkeep.errors import InvalidMessageError
from chatkeep.message import Message
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.record import UNSET, Unset
from chatkeep.times import parse_time
from chatkeep.transfer.parsing import parsed
from chatkeep.transfer.reading import chosen, walk
from chatkeep.transfer.writing import BATCH_MESSAGES, PlacedError, Progress, Tally, Writer, no_progress


class Difference(msgspec.Struct, frozen=True):
    """A conversation that has not as many live messages at the target as at the source."""

    conversation_id: str
    source: int
    target: int


def import_lines(
    repository: ChatMemoryRepository,
    lines: Iterable[bytes | str | dict[str, Any]],
    *,
    batch: int = BATCH_MESSAGES,
    tally: Tally | None = None,
    progress: Progress = no_progress,
) -> Tally:
    """Store the lines of an export (text, or dicts as `export_lines` gives them) under the repository's owner.

    A second import of the same lines changes nothing, so an interrupted one is simply repeated. Messages go to the
    end of conversations that exist. What is left of a message's life becomes its ttl; expired messages are left out
    and counted. Title and metadata of a line replace those stored where the line has any.

    A line that can't be used raises InvalidMessageError with its number; what came before it is stored. `tally`
    tells, also after an error, what went through.
    """
    tally = Tally() if tally is None else tally
    writer = Writer(repository, batch, tally, progress)
    try:
        for number, line in enumerate(lines, 1):
            try:
                _feed(writer, line, f"line {number}")
            except PlacedError:
                raise
            except (ValueError, TypeError, RecursionError) as exc:
                raise PlacedError(f"line {number}: {exc}") from exc
            tally.lines = number
    except InvalidMessageError:
        writer.finish()
        raise
    writer.finish()
    return tally


def _feed(writer: Writer, line: bytes | str | dict[str, Any], where: str) -> None:
    data = line if isinstance(line, dict) else _parsed(line)
    if data is None:
        return
    kind = data.get("type")
    if kind == "conversation":
        writer.conversation(_text(data, "id"), data.get("title"), data.get("metadata") or {}, where)
    elif kind == "message":
        body = data.get("message")
        if not isinstance(body, dict):
            raise ValueError("message: expected an object as Message.to_dict() makes it")
        if "id" not in body:
            raise ValueError("message.id: missing; without one a second import would store it twice")
        writer.message(_text(data, "conversation_id"), Message.from_dict(body), _expiry(data), where)
    else:
        raise ValueError(f'type: expected "conversation" or "message", got {kind!r:.40}')


def _parsed(line: bytes | str) -> dict[str, Any] | None:
    data = parsed(line)
    if data is not None and not isinstance(data, dict):
        raise ValueError(f"expected a JSON object, got {type(data).__name__}")
    return data


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key}: expected text, got {type(value).__name__}" if key in data else f"{key}: missing")
    return value


def _expiry(data: dict[str, Any]) -> dt.datetime | Unset | None:
    """None: never expires; UNSET: the line says nothing, and the repository's own ttl counts."""
    if "expires_at" not in data:
        return UNSET
    if data["expires_at"] is None:
        return None
    moment = parse_time(data["expires_at"], "expires_at")
    if moment.tzinfo is None:
        raise ValueError("expires_at: has no time zone; expected for example 2027-01-31T12:00:00Z")
    return moment


def copy(
    source: ChatMemoryRepository,
    target: ChatMemoryRepository,
    *,
    conversation_ids: Iterable[str] | None = None,
    batch: int = BATCH_MESSAGES,
    tally: Tally | None = None,
    progress: Progress = no_progress,
) -> Tally:
    """Copy conversations with titles, metadata and what is left of their messages' lives. Repeatable.

    `compare` says afterwards whether everything arrived.
    """
    tally = Tally() if tally is None else tally
    writer = Writer(target, batch, tally, progress)
    for item in walk(source, conversation_ids):
        if isinstance(item, Conversation):
            writer.conversation(item.id, item.title, item.metadata, f"conversation {item.id!r}")
        else:
            conversation_id, entry = item
            where = f"conversation {conversation_id!r}, position {entry.position}"
            writer.message(conversation_id, entry.message, entry.expires_at, where)
    writer.finish()
    return tally


def compare(
    source: ChatMemoryRepository, target: ChatMemoryRepository, conversation_ids: Iterable[str] | None = None
) -> Iterator[Difference]:
    """The conversations of the source that have another number of live messages at the target."""
    for conversation in chosen(source, conversation_ids):
        there = target.count_messages(conversation.id)
        # Asked again: messages may have expired or arrived since the page of the directory was read.
        if there != conversation.message_count and there != (here := source.count_messages(conversation.id)):
            yield Difference(conversation.id, here, there)
