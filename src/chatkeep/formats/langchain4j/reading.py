"""LangChain4j's messages -> Message. Takes out of a copy what a Message has a field for; the rest becomes notes."""

from __future__ import annotations

from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.formats.langchain4j import shapes
from chatkeep.formats.shared.encodings import from_base64, linked_image_type
from chatkeep.formats.shared.objects import Json, message_at, object_at, take, take_or_leave, take_or_note
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

notes = shapes.NOTES.holding


def read_message(message: Any, path: str, fields: Json) -> Message:
    """The Message of one dict; `fields` are those that LangChain4j has no place for."""
    rest = message_at(message, path)
    kind = take(rest, "type", str, path)
    if kind not in shapes.ROLES:
        raise InvalidMessageError(f"{path}.type: expected one of {', '.join(shapes.ROLES)}, got {kind!r:.40}")
    name: str | None = None
    metadata: Json | None = None
    parts: tuple[Part, ...] = ()
    if kind == "SYSTEM":
        parts = (Text(take(rest, "text", str, path)),)
    elif kind == "USER":
        name = take_or_leave(rest, "name", str, path)
        parts = read_contents(take(rest, "contents", list, path), f"{path}.contents")
        # Written only where there are any: none at all may be written as {}.
        metadata = take_or_leave(rest, "attributes", dict, path) if rest.get("attributes") != {} else None
    else:
        metadata = take_or_note(rest, "attributes", dict, path)
        if kind == "AI":
            parts = _read_ai(rest, path)
        elif kind == "TOOL_EXECUTION_RESULT":
            parts = (_read_result(rest, path),)
    return Message(shapes.ROLES[kind], parts, name=name, metadata=metadata or {}, extra=notes(rest), **fields)


def _read_ai(rest: Json, path: str) -> tuple[Part, ...]:
    thinking, text = take_or_leave(rest, "thinking", str, path), take_or_leave(rest, "text", str, path)
    calls = take_or_note(rest, "toolExecutionRequests", list, path) or []
    where = f"{path}.toolExecutionRequests"
    return (
        *(() if thinking is None else (Thinking(thinking),)),
        *(() if text is None else (Text(text),)),
        *(_read_call(call, f"{where}[{index}]") for index, call in enumerate(calls)),
    )


def _read_call(call: Any, path: str) -> ToolCall:
    rest = object_at(call, path)
    name = take(rest, "name", str, path)
    call_id, arguments = take_or_note(rest, "id", str, path), take_or_note(rest, "arguments", str, path)
    return ToolCall(call_id or "", name, arguments or "", notes(rest))


def _read_result(rest: Json, path: str) -> ToolResult:
    """Its message is one object with it, so what is left is noted there."""
    content: str | tuple[Part, ...]
    if "text" in rest:
        if "contents" in rest:
            raise InvalidMessageError(f"{path}.contents: either text or contents, not both")
        content = take(rest, "text", str, path)
        rest["contents"] = shapes.FORM_TEXT
    else:
        content = read_contents(take(rest, "contents", list, path), f"{path}.contents")
        if len(content) == 1 and isinstance(content[0], Text) and not content[0].extra:
            content = content[0].text
    failed = take_or_note(rest, "isError", bool, path)
    call_id, name = take_or_note(rest, "id", str, path), take_or_leave(rest, "toolName", str, path)
    return ToolResult(call_id or "", content, name, bool(failed))


def read_contents(contents: list[Any], path: str) -> tuple[Part, ...]:
    """The parts of a list of contents."""
    return tuple(read_content(content, f"{path}[{index}]") for index, content in enumerate(contents))


def read_content(content: Any, path: str) -> Part:
    """One content."""
    rest = object_at(content, path)
    kind = take(rest, "type", str, path)
    if kind == "TEXT":
        return Text(take(rest, "text", str, path), notes(rest))
    media = _read_media(kind, rest, path) if kind in shapes.MEDIA_FIELDS else None
    return media or Opaque(shapes.OPAQUE_CONTENT, content)


def _read_media(kind: str, rest: Json, path: str) -> Media | None:
    """None for what is neither a link nor bytes, or both, or encoded otherwise, or lacks a level of detail."""
    field = shapes.MEDIA_FIELDS[kind]
    inner = take(rest, field, dict, path)
    where = f"{path}.{field}"
    url, encoded = take_or_leave(inner, "url", str, where), take_or_leave(inner, "base64Data", str, where)
    binary = take_or_leave(inner, "binaryData", str, where) if kind == "AUDIO" else None
    mime_type = take_or_leave(inner, "mimeType", str, where)
    given = [one for one in (url, encoded, binary) if one is not None]
    data = None if url is not None or not given else from_base64(given[0])
    if len(given) != 1 or (url is None and data is None):
        return None
    forms = [] if binary is None else [shapes.BINARY]
    if mime_type is None:
        if "mimeType" in inner:
            return None
        mime_type = shapes.guessed_type(kind, linked_image_type(url or ""))
        forms.append(shapes.UNTYPED)
    if shapes.content_type(mime_type) != kind:
        forms.append(kind)
    if kind == "IMAGE":
        detail = take_or_leave(rest, "detailLevel", str, path)
        if detail is None:
            return None
        if detail != shapes.DETAIL:
            rest["detailLevel"] = detail
    if len(forms) > 1:
        return None
    if forms:
        rest["type"] = forms[0]
    if inner:
        rest[field] = inner
    return Media(mime_type, data, url, extra=notes(rest))
