"""Spring AI's rows and documents -> Messages. Takes out of a copy what a Message has a field for; the rest is noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.formats.shared.encodings import from_base64
from chatkeep.formats.shared.objects import (
    MISSING,
    Json,
    check_optional,
    json_type,
    message_at,
    object_at,
    take,
    take_filled_list,
    take_or_leave,
    take_or_note,
)
from chatkeep.formats.spring_ai import shapes
from chatkeep.message import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from chatkeep.times import EARLIEST


def read_rows(rows: list[Any], path: str = "rows") -> list[Message]:
    """The Messages of one conversation's rows."""
    read: list[Message] = []
    position = 0

    def read_one(rest: Json, role: str, where: str) -> Message:
        nonlocal position
        message, position = _read_row(rest, role, where, position)
        return message

    for index, row in enumerate(rows):
        read.append(_read(row, f"{path}[{index}]", rows[0], read_one))
    return read


def read_documents(documents: list[Any], path: str = "documents") -> list[Message]:
    """The Messages of one conversation's documents."""
    return [_read(item, f"{path}[{index}]", documents[0], _read_document) for index, item in enumerate(documents)]


def _read(item: Any, path: str, first: Json, read: Callable[[Json, str, str], Message]) -> Message:
    rest = message_at(item, path)
    kind = take(rest, "type", str, path)
    if kind not in shapes.ROLES:
        raise InvalidMessageError(f"{path}.type: expected one of {', '.join(shapes.ROLES)}, got {kind!r:.40}")
    if "conversation_id" in rest:
        take(rest, "conversation_id", str, path)
    if item.get("conversation_id") != first.get("conversation_id"):
        raise InvalidMessageError(f"{path}.conversation_id: another one than that of the first; give one at a time")
    return read(rest, shapes.ROLES[kind], path)


def _read_row(rest: Json, role: str, path: str, position: int) -> tuple[Message, int]:
    """The Message of a row that is expected at a position, and the position behind it."""
    if "content" not in rest:
        raise InvalidMessageError(f"{path}.content: missing")
    content = take_or_leave(rest, "content", str, path)
    _check_number(rest, "timestamp", path, (int, str))
    _check_number(rest, "sequence_id", path, (int,))
    fields: Json = {}
    moment = shapes.parse_timestamp(rest.get("timestamp"))
    if moment is not None and moment >= EARLIEST:
        fields["created_at"] = moment
        if shapes.format_timestamp(moment) == rest["timestamp"]:
            del rest["timestamp"]
    elif "timestamp" not in rest:
        rest["timestamp"] = shapes.ABSENT
    given = rest.setdefault("sequence_id", shapes.ABSENT)
    if given is not shapes.ABSENT and given == position:
        del rest["sequence_id"]
    following = 1 + (given if type(given) is int else position)
    parts = () if content is None else (Text(content),)
    return Message(role, parts, extra=shapes.ROWS.holding(rest), **fields), following


def _check_number(data: Json, key: str, path: str, kinds: tuple[type, ...]) -> None:
    value = data.get(key)
    if value is not None and type(value) not in kinds:
        wanted = " or ".join(one.__name__ for one in kinds)
        raise InvalidMessageError(f"{path}.{key}: expected {wanted}, got {json_type(value)}")


def _read_document(rest: Json, role: str, path: str) -> Message:
    _check_number(rest, "timestamp", path, (int, float))
    rest.setdefault("timestamp", shapes.ABSENT)
    metadata = take_or_note(rest, "metadata", dict, path)
    content = take_or_leave(rest, "content", str, path)
    parts: list[Part] = []
    if role == "tool" and not content:
        # As Spring AI writes them: what a tool said is in the responses.
        if content is None and "content" not in rest:
            rest["content"] = MISSING
    elif content is not None:
        parts.append(Text(content))
    for key, read in (("media", read_media), ("toolCalls", _read_call), ("toolResponses", _read_response)):
        found = take_filled_list(rest, key, path)
        parts += [read(item, f"{path}.{key}[{index}]") for index, item in enumerate(found)]
    return Message(role, tuple(parts), metadata=metadata or {}, extra=shapes.DOCUMENTS.holding(rest))


def _read_call(call: Any, path: str) -> ToolCall:
    rest = object_at(call, path)
    if "type" not in rest:
        rest["type"] = shapes.ABSENT
    elif take(rest, "type", str, path) != shapes.CALL_TYPE:
        rest["type"] = call["type"]
    call_id, name = take(rest, "id", str, path), take(rest, "name", str, path)
    return ToolCall(call_id, name, take(rest, "arguments", str, path), shapes.DOCUMENTS.holding(rest))


def _read_response(response: Any, path: str) -> ToolResult:
    rest = object_at(response, path)
    call_id, name = take(rest, "id", str, path), take_or_leave(rest, "name", str, path)
    return ToolResult(call_id, take(rest, "responseData", str, path), name, extra=shapes.DOCUMENTS.holding(rest))


def read_media(media: Any, path: str) -> Media | Opaque:
    """One of a document's media; Opaque where it is neither base64 nor a link."""
    rest = object_at(media, path)
    mime_type = take(rest, "mimeType", str, path)
    check_optional(rest, "dataType", str, path)
    name, text = take_or_leave(rest, "name", str, path), rest.pop("data", None)
    if type(text) is str and rest.get("dataType") == shapes.BASE64:
        del rest["dataType"]
        data = from_base64(text)
        if data is not None:
            return Media(mime_type, data, name=name, extra=shapes.DOCUMENTS.holding(rest))
    elif type(text) is str:
        return Media(mime_type, url=text, name=name, extra=shapes.DOCUMENTS.holding(rest))
    return Opaque(shapes.OPAQUE_MEDIA, media)
