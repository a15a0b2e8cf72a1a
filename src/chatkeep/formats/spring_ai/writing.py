"""Messages -> Spring AI's rows and documents. What they can't say is refused with its path, or left out when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from chatkeep import values
from chatkeep.formats.shared.encodings import to_base64
from chatkeep.formats.shared.losses import Losses
from chatkeep.formats.shared.objects import Json, put
from chatkeep.formats.shared.parts import Placed, check_readable, named, placed, write_opaque
from chatkeep.formats.spring_ai import reading, shapes
from chatkeep.message import Media, Message, Opaque, Part, Text, ToolCall, ToolResult

_LISTS: dict[type, str] = {Media: "media", Opaque: "media", ToolCall: "toolCalls", ToolResult: "toolResponses"}
_ORDER = ["content", "media", "toolCalls", "toolResponses"]
"""The fields of a document that hold parts, in the order that reading gives them."""

Finish: TypeAlias = Callable[[Json, Message, Json], None]
"""Adds what places a row or document among the others; gets the object, the message and its notes."""


def write_rows(messages: Iterable[Message], conversation_id: str | None, losses: Losses) -> list[Json]:
    """The rows of some Messages."""
    position = 0

    def finish(row: Json, message: Message, noted: Json) -> None:
        nonlocal position
        if noted.get("timestamp", "") is shapes.ABSENT:
            del noted["timestamp"]
        elif "timestamp" not in noted:
            row["timestamp"] = shapes.format_timestamp(message.created_at)
        if "sequence_id" not in noted:
            row["sequence_id"] = position
        elif noted["sequence_id"] is shapes.ABSENT:
            del noted["sequence_id"]
        given = {**row, **noted}.get("sequence_id")
        position = 1 + (given if type(given) is int else position)

    return _write(messages, conversation_id, losses, _write_row, finish, reading.read_rows)


def write_documents(messages: Iterable[Message], conversation_id: str | None, losses: Losses) -> list[Json]:
    """The documents of some Messages."""
    last = 0

    def finish(document: Json, message: Message, noted: Json) -> None:
        nonlocal last
        put(document, noted, "metadata", values.copied_object(message.metadata, "metadata"), {})
        if noted.get("timestamp", "") is shapes.ABSENT:
            del noted["timestamp"]
        elif "timestamp" not in noted:
            # Documents are sorted by it, so it may not stand still.
            document["timestamp"] = max(last + 1, shapes.milliseconds(message.created_at))
        given = {**document, **noted}.get("timestamp")
        last = given if type(given) is int else last

    return _write(messages, conversation_id, losses, _write_document, finish, reading.read_documents)


def _write(
    messages: Iterable[Message],
    conversation_id: str | None,
    losses: Losses,
    write: Callable[[Message, Json, str, Losses], Json | None],
    finish: Finish,
    read: Callable[[list[Json]], object],
) -> list[Json]:
    made = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]."
        kind = shapes.TYPES.get(message.role)
        if kind is None:
            losses.refuse(f"{path}role", f"Spring AI knows no role {message.role!r}; it has {', '.join(shapes.TYPES)}")
            continue
        if message.name is not None:
            losses.refuse(f"{path}name", "its messages have no name")
        noted = losses.notes(message.extra, f"{path}extra")
        held = write(message, noted, path, losses)
        if held is None:
            continue
        item: Json = {"type": kind, **held}
        if conversation_id is not None:
            item["conversation_id"] = conversation_id
        finish(item, message, noted)
        losses.merge(item, noted, losses.path(path))
        check_readable(message, [item], path, losses, read)
        made.append(item)
    return made


def _write_row(message: Message, noted: Json, path: str, losses: Losses) -> Json | None:
    texts = []
    for where, part in placed(message.parts, f"{path}parts"):
        if isinstance(part, Text):
            losses.refuse_extra(part.extra, where)
            texts.append(part.text)
        else:
            losses.refuse(where, f"{named(part)}: a row is text and nothing else")
    if not texts and "content" in noted and noted["content"] is None:
        return {}
    if len(texts) != 1:
        losses.refuse(f"{path}parts", f"a row is one text, not {len(texts)}")
    return {"content": "".join(texts)} if texts else None


def _write_document(message: Message, noted: Json, path: str, losses: Losses) -> Json | None:
    made: Json = {}
    last = 0
    for where, part in placed(message.parts, f"{path}parts"):
        field = "content" if isinstance(part, Text) else _LISTS.get(type(part), "")
        item = _write_part((where, part), losses) if field else None
        if not field:
            losses.refuse(where, f"{named(part)} is nothing that a document has")
        if item is None:
            continue
        if _ORDER.index(field) < last or (field == "content" and "content" in made):
            losses.refuse(where, f"a document has one order, and one content: {', '.join(_ORDER)}")
        last = max(last, _ORDER.index(field))
        if field == "content":
            made[field] = made.get(field, "") + item["content"]
        else:
            made.setdefault(field, []).append(item)
    if message.parts and not made:
        return None
    if message.role == "tool" and not made.get("content"):
        if "content" in made:
            losses.refuse(f"{path}parts", "an empty text of a tool message comes back as none")
        put(made, noted, "content", "", "")
    return made


def _write_part(item: Placed, losses: Losses) -> Json | None:
    path, part = item
    if isinstance(part, Text):
        losses.refuse_extra(part.extra, path)
        return {"content": part.text}
    if isinstance(part, Opaque):
        if part.type == shapes.OPAQUE_MEDIA:
            return write_opaque(part, path, losses, reading.read_media)
        losses.refuse(path, f"{named(part)} is nothing that a document has")
        return None
    assert isinstance(part, Media | ToolCall | ToolResult)
    noted = losses.notes(part.extra, f"{path}.extra")
    return losses.merge(_fields(part, noted, path, losses), noted, losses.path(path))


def _fields(part: Part, noted: Json, path: str, losses: Losses) -> Json:
    if isinstance(part, ToolCall):
        made: Json = {"id": part.id, "name": part.name, "arguments": part.arguments}
        if noted.get("type", "") is shapes.ABSENT:
            del noted["type"]
        elif "type" not in noted:
            made["type"] = shapes.CALL_TYPE
        return made
    assert isinstance(part, Media | ToolResult)
    made = {} if part.name is None else {"name": part.name}
    if isinstance(part, Media):
        held = {"data": part.url} if part.data is None else {"data": to_base64(part.data), "dataType": shapes.BASE64}
        return {**made, "mimeType": part.mime_type, **held}
    if part.is_error:
        losses.refuse(f"{path}.is_error", f"{losses.kept.label} have no mark for failed calls; say it in the content")
    if not isinstance(part.content, str):
        losses.refuse(f"{path}.content", "a tool response is text")
    return {**made, "id": part.call_id, "responseData": part.text}
