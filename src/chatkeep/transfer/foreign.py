"""Import and export of conversations in the formats of others. Knows no terminal and no files."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from chatkeep.errors import InvalidMessageError
from chatkeep.formats import find_format
from chatkeep.formats.documents import Format
from chatkeep.formats.shared.losses import HINT
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.record import UNSET
from chatkeep.transfer.parsing import documents
from chatkeep.transfer.reading import chosen, entries
from chatkeep.transfer.writing import BATCH_MESSAGES, PlacedError, Progress, Tally, Writer, no_progress

_IDS = uuid.UUID("6f2f4a56-2c5b-5f0e-9d0a-5a3f0f6f0c11")
"""The namespace of the ids of imported messages. Never changes: a second import would store all again."""

ID = "conversation_id"
_ROW = re.compile(r"\w+\[(\d+)\]\.")
"""The path of a row within those of its conversation, at the start of an error."""


def import_documents(
    repository: ChatMemoryRepository,
    lines: Iterable[bytes],
    format: str,
    *,
    conversation_id: str | None = None,
    batch: int = BATCH_MESSAGES,
    tally: Tally | None = None,
    progress: Progress = no_progress,
) -> Tally:
    """Store the conversations of a file of one of `chatkeep.formats`, under the repository's owner.

    The file is JSON Lines, or one JSON text. A conversation is an object with `conversation_id` and the format's
    fields, or a list of messages alone; `conversation_id` names that of a file that holds one and doesn't tell. Of
    formats of rows each object is a row. Other fields of an object (a request's `model` or `tools`) are kept in the
    conversation's metadata under the format's name, and `export_documents` writes them again.

    Messages have no ids there: theirs are made of conversation id and place, so a second import of the same file
    changes nothing, and one of a file that has grown stores what is new. A message that was changed in
    between is an error.

    Raises InvalidMessageError with line and path of what is wrong; what came before it is stored. `tally` tells, also
    after an error, what went through.
    """
    tally = Tally() if tally is None else tally
    target = _Target(repository, find_format(format), conversation_id, Writer(repository, batch, tally, progress))
    try:
        for places, value in _conversations(_counted(lines, tally), target.format):
            target.store(places, value)
    except InvalidMessageError:
        target.writer.finish()
        raise
    target.writer.finish()
    return tally


def _counted(lines: Iterable[bytes], tally: Tally) -> Iterator[bytes]:
    for line in lines:
        yield line
        tally.lines += 1


def _conversations(lines: Iterable[bytes], format: Format) -> Iterator[tuple[list[str], Any]]:
    """Documents with their places; rows that stand together and share a conversation id as one, with those of all."""
    if not format.rows:
        for where, value in documents(lines):
            yield [where], value
        return
    rows = ((where, row) for where, value in documents(lines) for row in (value if type(value) is list else [value]))
    for _, group in groupby(rows, lambda item: _id_of(item[1])):
        together = list(group)
        yield [where for where, _ in together], [row for _, row in together]


def _id_of(value: Any) -> Any:
    return value.get(ID) if type(value) is dict else None


class _Target:
    """Where conversations of one format go."""

    def __init__(
        self, repository: ChatMemoryRepository, format: Format, conversation_id: str | None, writer: Writer
    ) -> None:
        self.format = format
        self.writer = writer
        self._repository = repository
        self._named = conversation_id
        self._stored: dict[str, int] = {}
        """Messages of each conversation so far, of this file."""

    def store(self, places: list[str], value: Any) -> None:
        """Store one conversation, or a piece of one."""
        try:
            self._store(places, value)
        except PlacedError:
            raise
        except (ValueError, TypeError, RecursionError) as exc:
            row = _ROW.match(str(exc)) if self.format.rows else None
            place = places[int(row[1])] if row else places[0]
            text = str(exc)[row.end() :] if row and place else str(exc)
            raise PlacedError(f"{place}: {text}" if place else text) from exc

    def _store(self, places: list[str], value: Any) -> None:
        conversation_id = self._conversation_id(_id_of(value[0] if self.format.rows else value))
        messages = self.format.read(value)
        metadata = self._metadata(conversation_id, value)
        self.writer.conversation(conversation_id, None, metadata, places[0] or "the file")
        start = self._stored.get(conversation_id, 0)
        for number, message in enumerate(messages, start):
            own = msgspec.structs.replace(message, id=_message_id(self.format.name, conversation_id, number))
            place = f"{places[0]}: " if places[0] else ""
            self.writer.message(conversation_id, own, UNSET, f"{place}message {number + 1} of {conversation_id!r}")
        self._stored[conversation_id] = start + len(messages)

    def _conversation_id(self, told: Any) -> str:
        if told is not None and type(told) is not str:
            raise ValueError(f"{ID}: expected text, got {type(told).__name__}")
        if self._named is None:
            if told is None:
                raise ValueError(f"{ID}: missing; --conversation (conversation_id= in Python) names it")
            return told
        if told not in (None, self._named):
            raise ValueError(f"{ID}: the file names {told!r:.80} and you {self._named!r:.80}")
        if told is None and self._stored:
            raise ValueError(f"{ID}: missing; {self._named!r:.80} is the conversation before")
        return self._named

    def _metadata(self, conversation_id: str, value: Any) -> dict[str, Any]:
        """The conversation's metadata with the rest of the document; {} changes nothing."""
        if type(value) is not dict:
            return {}
        rest = {key: item for key, item in value.items() if key not in (ID, *self.format.fields)}
        if not rest:
            return {}
        stored = self._repository.get_conversation(conversation_id)
        return {**(stored.metadata if stored else {}), self.format.name: rest}


def _message_id(format: str, conversation_id: str, number: int) -> str:
    return str(uuid.uuid5(_IDS, f"{format}\n{number}\n{conversation_id}"))


def export_documents(
    repository: ChatMemoryRepository,
    format: str,
    conversation_ids: Iterable[str] | None = None,
    *,
    drop_unsupported: bool = False,
    hint: str = HINT,
) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """Conversations in one of `chatkeep.formats`, each as its lines (one document, or the rows) and
    its number of messages. One conversation is in memory at once.

    Ids, times, titles and metadata are not part of most formats: to move conversations, use `export_lines`.
    Raises InvalidMessageError with conversation and path of what the format can't say; with `drop_unsupported` that is
    left out.
    """
    chosen_format = find_format(format)
    for conversation in chosen(repository, conversation_ids):
        messages = [entry.message for entry in entries(repository, conversation.id)]
        try:
            made = chosen_format.write(
                messages, conversation_id=conversation.id, drop_unsupported=drop_unsupported, hint=hint
            )
        except InvalidMessageError as exc:
            raise InvalidMessageError(f"conversation {conversation.id!r}: {exc}") from exc
        if chosen_format.rows:
            yield made[chosen_format.fields[-1]], len(messages)
            continue
        rest = conversation.metadata.get(format)
        yield [{ID: conversation.id, **(rest if type(rest) is dict else {}), **made}], len(messages)
