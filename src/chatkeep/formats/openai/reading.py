"""OpenAI message dicts -> Message. Takes out of a copy what a Message has a field for; the rest becomes notes."""

from __future__ import annotations

from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.formats.openai import shapes
from chatkeep.formats.shared.encodings import from_base64, from_data_url, linked_image_type
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
)
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

notes = shapes.NOTES.holding


def read_message(message: Any, path: str, fields: Json) -> Message:
    """The Message of one dict; `fields` are those that OpenAI has no place for."""
    rest = message_at(message, path)
    role = take(rest, "role", str, path)
    if role in shapes.RESULT_ROLES:
        return Message(role, (_read_result(role, rest, path),), **fields)
    name = take_or_leave(rest, "name", str, path)
    parts, form = _read_message_content(rest, path)
    for key, kind in (("audio", dict), ("annotations", list)):
        check_optional(rest, key, kind, path)
    if form is not None:
        rest["content"] = form
    return Message(role, parts, name=name, extra=notes(rest), **fields)


def _read_message_content(rest: Json, path: str) -> tuple[tuple[Part, ...], str | None]:
    """The parts in the order that OpenAI's fields have here: reasoning, content, refusal, tool calls."""
    reasoning = take_or_leave(rest, "reasoning_content", str, path)
    before = () if reasoning is None else (Thinking(reasoning),)
    content, form = _read_content(rest, path)
    refusal = take_or_leave(rest, "refusal", str, path)
    after: list[Part] = [] if refusal is None else [Text(refusal, notes({"type": shapes.REFUSAL_FIELD}))]
    calls = take_filled_list(rest, "tool_calls", path)
    after += [read_tool_call(call, f"{path}.tool_calls[{index}]") for index, call in enumerate(calls)]
    if rest.get("function_call") is not None:
        after.append(_read_function_call(take(rest, "function_call", dict, path), f"{path}.function_call"))
    return (*before, *content, *after), form


def _read_content(rest: Json, path: str) -> tuple[tuple[Part, ...], str | None]:
    if "content" not in rest:
        return (), MISSING
    content = rest.pop("content")
    if content is None:
        return (), None
    if type(content) is str:
        return (Text(content),), None
    parts = _read_parts(content, f"{path}.content")
    # Without a note, no part is written as null and one plain text as a string.
    plain = not parts or (len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].extra)
    return parts, shapes.FORM_LIST if plain else None


def _read_parts(content: Any, path: str) -> tuple[Part, ...]:
    if type(content) is not list:
        raise InvalidMessageError(f"{path}: expected str, list or null, got {json_type(content)}")
    return tuple(read_content_part(part, f"{path}[{index}]") for index, part in enumerate(content))


def _read_result(role: str, rest: Json, path: str) -> ToolResult:
    if role == "tool":
        call_id = take(rest, "tool_call_id", str, path)
        name = take_or_leave(rest, "name", str, path)
    else:
        # The older format knows one call at a time and no ids: the function's name stands for the id.
        call_id = name = take(rest, "name", str, path)
    if "content" not in rest:
        return ToolResult(call_id, "", name, extra=notes({**rest, "content": MISSING}))
    content = rest.pop("content")
    if content is None:
        return ToolResult(call_id, "", name, extra=notes({**rest, "content": shapes.FORM_NULL}))
    result = content if type(content) is str else _read_parts(content, f"{path}.content")
    return ToolResult(call_id, result, name, extra=notes(rest))


def read_content_part(part: Any, path: str) -> Part:
    """One element of a content list."""
    rest = object_at(part, path)
    kind = take(rest, "type", str, path)
    if kind == "text":
        return Text(take(rest, "text", str, path), notes(rest))
    if kind == "refusal":
        return Text(take(rest, "refusal", str, path), notes({"type": "refusal", **rest}))
    media = None
    if kind == "image_url":
        media = _read_image(rest, path)
    elif kind == "input_audio":
        media = _read_audio(rest, path)
    elif kind == "file":
        media = _read_file(rest, path)
    return media or Opaque(shapes.OPAQUE_CONTENT, part)


def _read_image(rest: Json, path: str) -> Media:
    inner = take(rest, "image_url", dict, path)
    url = take(inner, "url", str, f"{path}.image_url")
    check_optional(inner, "detail", str, f"{path}.image_url")
    if inner:
        rest["image_url"] = inner
    decoded = from_data_url(url)
    if decoded is None:
        return Media(linked_image_type(url), url=url, extra=notes(rest))
    return _embedded("image_url", *decoded, None, rest)


def _read_audio(rest: Json, path: str) -> Media | None:
    inner = take(rest, "input_audio", dict, path)
    encoded = take(inner, "data", str, f"{path}.input_audio")
    mime_type = shapes.audio_type(take(inner, "format", str, f"{path}.input_audio"))
    data = from_base64(encoded)
    if inner:
        rest["input_audio"] = inner
    return None if mime_type is None or data is None else _embedded("input_audio", mime_type, data, None, rest)


def _read_file(rest: Json, path: str) -> Media | None:
    inner = take(rest, "file", dict, path)
    for key in ("file_data", "file_id", "filename"):
        check_optional(inner, key, str, f"{path}.file")
    # A file that is only named by its id, or in another encoding, has no bytes to hold.
    decoded = from_data_url(inner.pop("file_data", None) or "")
    name = take_or_leave(inner, "filename", str, f"{path}.file")
    if inner:
        rest["file"] = inner
    return None if decoded is None else _embedded("file", *decoded, name, rest)


def _embedded(kind: str, mime_type: str, data: bytes, name: str | None, rest: Json) -> Media:
    media = Media(mime_type, data, name=name)
    if shapes.media_part_type(media) != kind:
        rest["type"] = kind
    return Media(mime_type, data, name=name, extra=notes(rest))


def read_tool_call(call: Any, path: str) -> ToolCall | Opaque:
    """One element of `tool_calls`; the input of a custom tool is free text and becomes `arguments` as it is."""
    rest = object_at(call, path)
    # Some providers leave the type away where there is only one.
    kind = take(rest, "type", str, path) if "type" in rest else "function"
    if kind not in ("function", "custom"):
        return Opaque(shapes.OPAQUE_TOOL_CALL, call)
    if "type" not in call:
        rest["type"] = MISSING
    elif kind == "custom":
        rest["type"] = kind
    identity = take(rest, "id", str, path)
    inner = take(rest, kind, dict, path)
    name = take(inner, "name", str, f"{path}.{kind}")
    arguments = take(inner, "input" if kind == "custom" else "arguments", str, f"{path}.{kind}")
    if inner:
        rest[kind] = inner
    return ToolCall(identity, name, arguments, notes(rest))


def _read_function_call(rest: Json, path: str) -> ToolCall:
    name = take(rest, "name", str, path)
    arguments = take(rest, "arguments", str, path)
    noted: Json = {"type": shapes.FUNCTION_CALL_FIELD}
    if rest:
        noted["function_call"] = rest
    # No ids here: name and name pair the call with the "function" message that answers it.
    return ToolCall(name, name, arguments, notes(noted))
