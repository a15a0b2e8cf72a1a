"""Anthropic's messages and blocks -> Message. Takes out of a copy what a Message has a field for; the rest is noted."""

from __future__ import annotations

from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.formats.anthropic import shapes
from chatkeep.formats.shared.encodings import from_base64, linked_image_type
from chatkeep.formats.shared.objects import (
    MISSING,
    Json,
    check_optional,
    json_type,
    message_at,
    object_at,
    take,
    take_or_leave,
)
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from chatkeep.storage.jsontext import dump_json

notes = shapes.NOTES.holding


def read_message(message: Any, path: str, fields: Json) -> Message:
    """The Message of one element of `messages`; `fields` are those that Anthropic has no place for."""
    rest = message_at(message, path)
    role = take(rest, "role", str, path)
    if role not in shapes.ROLES:
        raise InvalidMessageError(f"{path}.role: expected one of {', '.join(shapes.ROLES)}, got {role!r:.40}")
    if "content" not in rest:
        raise InvalidMessageError(f"{path}.content: missing")
    parts, form = read_content(rest.pop("content"), f"{path}.content")
    if form is not None:
        rest["content"] = form
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        role = "tool"
    return Message(role, parts, extra=notes(rest), **fields)


def read_system(system: Any, path: str) -> Message:
    """The Message of a request's `system`."""
    parts, form = read_content(system, path)
    return Message("system", parts, extra=notes({} if form is None else {"content": form}))


def read_content(content: Any, path: str) -> tuple[tuple[Part, ...], str | None]:
    """The parts, and the form where it isn't the default: one plain text is written as a string, all else as a list."""
    if type(content) is str:
        return (Text(content),), None
    parts = _read_blocks(content, path)
    plain = len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].extra
    return parts, shapes.FORM_LIST if plain else None


def _read_blocks(content: Any, path: str) -> tuple[Part, ...]:
    if type(content) is not list:
        raise InvalidMessageError(f"{path}: expected str or list, got {json_type(content)}")
    return tuple(read_block(block, f"{path}[{index}]") for index, block in enumerate(content))


def read_block(block: Any, path: str) -> Part:
    """One element of a content list."""
    rest = object_at(block, path)
    kind = take(rest, "type", str, path)
    part: Part | None = None
    if kind == "text":
        part = Text(take(rest, "text", str, path), notes(rest))
    elif kind == "thinking":
        part = _read_thinking(rest, path)
    elif kind == "tool_use":
        arguments = dump_json(take(rest, "input", dict, path))
        part = ToolCall(take(rest, "id", str, path), take(rest, "name", str, path), arguments, notes(rest))
    elif kind == "tool_result":
        part = _read_result(rest, path)
    elif kind in ("image", "document"):
        part = _read_media(kind, rest, path)
    return part or Opaque(shapes.OPAQUE_BLOCK, block)


def _read_thinking(rest: Json, path: str) -> Thinking:
    text = take(rest, "thinking", str, path)
    if "signature" not in rest:
        return Thinking(text, extra=notes({**rest, "signature": MISSING}))
    return Thinking(text, take_or_leave(rest, "signature", str, path), notes(rest))


def _read_result(rest: Json, path: str) -> ToolResult:
    call_id = take(rest, "tool_use_id", str, path)
    # An explicit false or null is how it was written; it stays and so is noted.
    check_optional(rest, "is_error", bool, path)
    failed = rest.get("is_error") is True and rest.pop("is_error")
    if "content" not in rest:
        return ToolResult(call_id, "", is_error=failed, extra=notes({**rest, "content": MISSING}))
    content = rest.pop("content")
    result = content if type(content) is str else _read_blocks(content, f"{path}.content")
    return ToolResult(call_id, result, is_error=failed, extra=notes(rest))


def _read_media(kind: str, rest: Json, path: str) -> Media | None:
    """None for what is named by a file id, made of blocks, or encoded otherwise: there are no bytes or link to hold."""
    source = take(rest, "source", dict, path)
    where = f"{path}.source"
    name = take_or_leave(rest, "title", str, path) if kind == "document" else None
    how = take(source, "type", str, where)
    media: Media | None = None
    if how == "base64":
        mime_type, data = take(source, "media_type", str, where), from_base64(take(source, "data", str, where))
        media = None if data is None else Media(mime_type, data, name=name)
        normal = kind == "image" or mime_type == shapes.PDF
    elif how == "url":
        url = take(source, "url", str, where)
        media = Media(linked_image_type(url) if kind == "image" else shapes.PDF, url=url, name=name)
        normal = True
    elif how == "text" and kind == "document" and source.get("media_type") == shapes.PLAIN_TEXT:
        del source["media_type"]
        media = Media(shapes.PLAIN_TEXT, _utf8(take(source, "data", str, where)), name=name)
        normal = True
    if media is None or not normal:
        return None
    if source:
        rest["source"] = source
    if shapes.block_type(media) != kind:
        rest["type"] = kind
    return Media(media.mime_type, media.data, media.url, media.name, notes(rest))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
