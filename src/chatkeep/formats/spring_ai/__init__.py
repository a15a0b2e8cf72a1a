"""What Spring AI's chat memory repositories store <-> Message: JDBC rows, and Redis documents. No Java, no database.

A row has text and nothing else; a document also has tool calls, tool responses, media and metadata. What a Message has
no field for is kept under `extra["spring-ai"]` or `extra["spring-ai-redis"]`; what a row or a document has no field
for is refused with its path. docs/formats.md has the tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chatkeep.formats.shared.losses import HINT, Losses
from chatkeep.formats.shared.objects import list_of
from chatkeep.formats.spring_ai import reading, shapes
from chatkeep.formats.spring_ai.writing import write_documents, write_rows
from chatkeep.message import Message

__all__ = [
    "messages_from_spring_ai",
    "messages_from_spring_ai_redis",
    "messages_to_spring_ai",
    "messages_to_spring_ai_redis",
]


def messages_from_spring_ai(rows: Iterable[dict[str, Any]]) -> list[Message]:
    """The Messages of one conversation's rows of SPRING_AI_CHAT_MEMORY, ordered by `sequence_id`.

    Column names are in lower case. `timestamp` becomes `created_at`; its column has no zone and is taken for UTC.
    `conversation_id` is not part of a Message: rows of several conversations are for several calls.
    Raises InvalidMessageError (or UnstorableValueError for what is no JSON) with the path of what is wrong.
    """
    return reading.read_rows(list_of(rows, "rows"))


def messages_to_spring_ai(
    messages: Iterable[Message],
    *,
    conversation_id: str | None = None,
    drop_unsupported: bool = False,
    hint: str = HINT,
) -> list[dict[str, Any]]:
    """The rows of some Messages, with `conversation_id` where one is given.

    Raises InvalidMessageError with the path of what a row can't say, such as a tool call; with `drop_unsupported` that
    is left out, and a message of which nothing is left makes no row. `hint` ends the texts of refusals.
    """
    losses = Losses(shapes.ROWS, drop_unsupported, hint)
    return write_rows(messages, conversation_id, losses)


def messages_from_spring_ai_redis(documents: Iterable[dict[str, Any]]) -> list[Message]:
    """The Messages of one conversation's documents, as `messages_from_spring_ai`; `timestamp` is no time there."""
    return reading.read_documents(list_of(documents, "documents"))


def messages_to_spring_ai_redis(
    messages: Iterable[Message],
    *,
    conversation_id: str | None = None,
    drop_unsupported: bool = False,
    hint: str = HINT,
) -> list[dict[str, Any]]:
    """The documents of some Messages, with the options of `messages_to_spring_ai`."""
    return write_documents(messages, conversation_id, Losses(shapes.DOCUMENTS, drop_unsupported, hint))
