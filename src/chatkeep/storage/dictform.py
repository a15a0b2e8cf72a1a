"""Message <-> dict: the JSON values of a message and of its parts, tagged with the format version."""

from __future__ import annotations

import base64
from typing import Any

from chatkeep import message as m
from chatkeep import values
from chatkeep.errors import InvalidMessageError
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from chatkeep.times import format_time, parse_time

FORMAT = "chatkeep/1"

_MESSAGE_DEPTH = values.MAX_DEPTH + 2 * m.MAX_RESULT_DEPTH + 4
"""Levels of the dict form: a value of the deepest kind inside the deepest tool result of a message's parts."""


def message_to_dict(message: Message) -> dict[str, Any]:
    """The dict form: JSON values only, checked again since containers may have been changed after construction."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "role": message.role,
        "id": message.id,
        "created_at": format_time(message.created_at),
        "parts": [part_to_dict(part, f"parts[{index}]") for index, part in enumerate(message.parts)],
    }
    add_rest(data, message)
    return data


def message_from_dict(data: Any) -> Message:
    """The message of a dict form; InvalidMessageError names the path of what is wrong."""
    data = values.copied_object(data, "message", _MESSAGE_DEPTH)
    if data.get("format", FORMAT) != FORMAT:
        raise InvalidMessageError(f"format: {data['format']!r} is not known here; this package reads {FORMAT!r}")
    role = _take(data, "role", str, "message")
    created_at = data.pop("created_at", None)
    fields: dict[str, Any] = {"id": data.pop("id")} if "id" in data else {}
    if created_at is not None:
        fields["created_at"] = parse_time(created_at, "created_at")
    parts = parts_from_list(data.pop("parts", []), "parts", None)
    return Message(role, parts, **fields, **take_rest(data))


def part_to_dict(part: Part, path: str, *, elide_text: bool = False) -> dict[str, Any]:
    """One part as JSON values; with `elide_text` without the text that the content column holds."""
    data: dict[str, Any]
    if isinstance(part, Text):
        data = {"type": "text"} if elide_text else {"type": "text", "text": part.text}
    elif isinstance(part, ToolCall):
        data = {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments}
    elif isinstance(part, ToolResult):
        data = {"type": "tool_result", "call_id": part.call_id}
        if not isinstance(part.content, str):
            data["content"] = [
                part_to_dict(item, f"{path}.content[{index}]") for index, item in enumerate(part.content)
            ]
        elif not elide_text:
            data["content"] = part.content
        _set(data, "name", part.name)
        if part.is_error:
            data["is_error"] = True
    elif isinstance(part, Thinking):
        data = {"type": "thinking", "text": part.text}
        _set(data, "signature", part.signature)
    elif isinstance(part, Media):
        data = {"type": "media", "mime_type": part.mime_type}
        _set(data, "data", None if part.data is None else base64.b64encode(part.data).decode())
        _set(data, "url", part.url)
        _set(data, "name", part.name)
    else:
        return {"type": "opaque", "kind": part.type, "data": values.copied_json(part.data, f"{path}.data")}
    if part.extra:
        data.update(values.copied_object(part.extra, f"{path}.extra"))
    return data


def part_from_dict(data: Any, path: str, content: str | None) -> Part:
    """One part; a part without its text takes `content`, where the caller has one to give."""
    if type(data) is not dict:
        raise InvalidMessageError(f"{path}: expected an object, got {type(data).__name__}")
    kind = _take(data, "type", str, path)
    if kind == "text":
        return Text(_text(data, "text", path, content), data)
    if kind == "tool_call":
        identity = _take(data, "id", str, path)
        name = _take(data, "name", str, path)
        return ToolCall(identity, name, _take(data, "arguments", str, path), data)
    if kind == "tool_result":
        call_id = _take(data, "call_id", str, path)
        result: str | tuple[Part, ...]
        if type(data.get("content")) is list:
            result = parts_from_list(data.pop("content"), f"{path}.content", None)
        else:
            result = _text(data, "content", path, content)
        name = _take_optional(data, "name", str, path)
        return ToolResult(call_id, result, name, bool(_take_optional(data, "is_error", bool, path)), data)
    if kind == "thinking":
        text = _take(data, "text", str, path)
        return Thinking(text, _take_optional(data, "signature", str, path), data)
    if kind == "media":
        mime_type = _take(data, "mime_type", str, path)
        encoded = _take_optional(data, "data", str, path)
        url = _take_optional(data, "url", str, path)
        name = _take_optional(data, "name", str, path)
        try:
            raw = None if encoded is None else base64.b64decode(encoded, validate=True)
        except ValueError as exc:
            raise InvalidMessageError(f"{path}.data: not base64") from exc
        return Media(mime_type, raw, url, name, data)
    if kind == "opaque":
        opaque = Opaque(_take(data, "kind", str, path), data.pop("data", None))
        if data:
            raise InvalidMessageError(f"{path}.{next(iter(data))}: not known in an opaque part")
        return opaque
    raise InvalidMessageError(f"{path}.type: {kind!r} is not known")


def add_rest(data: dict[str, Any], message: Message) -> None:
    _set(data, "name", message.name)
    if message.metadata:
        data["metadata"] = values.copied_object(message.metadata, "metadata")
    if message.extra:
        data.update(values.copied_object(message.extra, "extra"))


def take_rest(data: dict[str, Any]) -> dict[str, Any]:
    name = _take_optional(data, "name", str, "message")
    metadata = _take(data, "metadata", dict, "message") if "metadata" in data else {}
    data.pop("format", None)
    return {"name": name, "metadata": metadata, "extra": data}


def parts_from_list(value: Any, path: str, content: str | None) -> tuple[Part, ...]:
    if type(value) is not list:
        raise InvalidMessageError(f"{path}: expected a list, got {type(value).__name__}")
    return tuple(part_from_dict(item, f"{path}[{index}]", content) for index, item in enumerate(value))


def _text(data: dict[str, Any], key: str, path: str, content: str | None) -> str:
    if content is not None and key not in data:
        return content
    value: str = _take(data, key, str, path)
    return value


def _take(data: dict[str, Any], key: str, kind: type, path: str) -> Any:
    if key not in data:
        raise InvalidMessageError(f"{path}.{key}: missing")
    value = data.pop(key)
    if type(value) is not kind:
        raise InvalidMessageError(f"{path}.{key}: expected {kind.__name__}, got {type(value).__name__}")
    return value


def _take_optional(data: dict[str, Any], key: str, kind: type, path: str) -> Any:
    if data.get(key) is None:
        data.pop(key, None)
        return None
    return _take(data, key, kind, path)


def _set(data: dict[str, Any], key: str, value: Any) -> None:
    if value is not None:
        data[key] = value
