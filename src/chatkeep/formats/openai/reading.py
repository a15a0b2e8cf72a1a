"""OpenAI message dicts -> Message. Takes out of a copy what a Message has a field for; the rest becomes notes."""

from __future__ import annotations

from typing import Any

from chatkeep import values
from chatkeep.errors import InvalidMessageError
from chatkeep.formats.openai import shapes
from chatkeep.formats.openai.shapes import notes
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

Json = dict[str, Any]


def read_message(message: Any, path: str, fields: Json) -> Message:
    """The Message of one dict; `fields` are those that OpenAI has no place for."""
    if type(message) is not dict:
        raise InvalidMessageError(
            f"{path}: expected a dict, got {type(message).__name__}; "
            "for an object of the SDK give its .model_dump(exclude_unset=True)"
        )
    rest = values.copied_object(message, path)
    role = _take(rest, "role", str, path)
    if role in shapes.RESULT_ROLES:
        return Message(role, (_read_result(role, rest, path),), **fields)
    name = _take_str_or_leave(rest, "name", path)
    parts, form = _read_message_content(rest, path)
    for key, kind in (("audio", dict), ("annotations", list)):
        _check_optional(rest, key, kind, path)
    if form is not None:
        rest["content"] = form
    return Message(role, parts, name=name, extra=notes(rest), **fields)


def _read_message_content(rest: Json, path: str) -> tuple[tuple[Part, ...], str | None]:
    """The parts in the order that OpenAI's fields have here: reasoning, content, refusal, tool calls."""
    reasoning = _take_str_or_leave(rest, "reasoning_content", path)
    before = () if reasoning is None else (Thinking(reasoning),)
    content, form = _read_content(rest, path)
    refusal = _take_str_or_leave(rest, "refusal", path)
    after: list[Part] = [] if refusal is None else [Text(refusal, notes({"type": shapes.REFUSAL_FIELD}))]
    calls = rest.get("tool_calls")
    if calls is not None and type(calls) is not list:
        raise InvalidMessageError(f"{path}.tool_calls: expected list or null, got {type(calls).__name__}")
    if calls:
        del rest["tool_calls"]
        after += [read_tool_call(call, f"{path}.tool_calls[{index}]") for index, call in enumerate(calls)]
    if rest.get("function_call") is not None:
        after.append(_read_function_call(_take(rest, "function_call", dict, path), f"{path}.function_call"))
    return (*before, *content, *after), form


def _read_content(rest: Json, path: str) -> tuple[tuple[Part, ...], str | None]:
    if "content" not in rest:
        return (), shapes.MISSING
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
        raise InvalidMessageError(f"{path}: expected str, list or null, got {type(content).__name__}")
    return tuple(read_content_part(part, f"{path}[{index}]") for index, part in enumerate(content))


def _read_result(role: str, rest: Json, path: str) -> ToolResult:
    if role == "tool":
        call_id = _take(rest, "tool_call_id", str, path)
        name = _take_str_or_leave(rest, "name", path)
    else:
        # The older format knows one call at a time and no ids: the function's name stands for the id.
        call_id = name = _take(rest, "name", str, path)
    if "content" not in rest:
        return ToolResult(call_id, "", name, extra=notes({**rest, "content": shapes.MISSING}))
    content = rest.pop("content")
    if content is None:
        return ToolResult(call_id, "", name, extra=notes({**rest, "content": shapes.FORM_NULL}))
    result = content if type(content) is str else _read_parts(content, f"{path}.content")
    return ToolResult(call_id, result, name, extra=notes(rest))


def read_content_part(part: Any, path: str) -> Part:
    """One element of a content list."""
    rest = _object(part, path)
    kind = _take(rest, "type", str, path)
    if kind == "text":
        return Text(_take(rest, "text", str, path), notes(rest))
    if kind == "refusal":
        return Text(_take(rest, "refusal", str, path), notes({"type": "refusal", **rest}))
    media = None
    if kind == "image_url":
        media = _read_image(rest, path)
    elif kind == "input_audio":
        media = _read_audio(rest, path)
    elif kind == "file":
        media = _read_file(rest, path)
    return media or Opaque(shapes.OPAQUE_CONTENT, part)


def _read_image(rest: Json, path: str) -> Media:
    inner = _take(rest, "image_url", dict, path)
    url = _take(inner, "url", str, f"{path}.image_url")
    _check_optional(inner, "detail", str, f"{path}.image_url")
    if inner:
        rest["image_url"] = inner
    decoded = shapes.from_data_url(url)
    if decoded is None:
        return Media(shapes.linked_image_type(url), url=url, extra=notes(rest))
    return _embedded("image_url", *decoded, None, rest)


def _read_audio(rest: Json, path: str) -> Media | None:
    inner = _take(rest, "input_audio", dict, path)
    encoded = _take(inner, "data", str, f"{path}.input_audio")
    mime_type = shapes.audio_type(_take(inner, "format", str, f"{path}.input_audio"))
    data = shapes.from_base64(encoded)
    if inner:
        rest["input_audio"] = inner
    return None if mime_type is None or data is None else _embedded("input_audio", mime_type, data, None, rest)


def _read_file(rest: Json, path: str) -> Media | None:
    inner = _take(rest, "file", dict, path)
    for key in ("file_data", "file_id", "filename"):
        _check_optional(inner, key, str, f"{path}.file")
    # A file that is only named by its id, or in another encoding, has no bytes to hold.
    decoded = shapes.from_data_url(inner.pop("file_data", None) or "")
    name = _take_str_or_leave(inner, "filename", f"{path}.file")
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
    rest = _object(call, path)
    # Some providers leave the type away where there is only one.
    kind = _take(rest, "type", str, path) if "type" in rest else "function"
    if kind not in ("function", "custom"):
        return Opaque(shapes.OPAQUE_TOOL_CALL, call)
    if "type" not in call:
        rest["type"] = shapes.MISSING
    elif kind == "custom":
        rest["type"] = kind
    identity = _take(rest, "id", str, path)
    inner = _take(rest, kind, dict, path)
    name = _take(inner, "name", str, f"{path}.{kind}")
    arguments = _take(inner, "input" if kind == "custom" else "arguments", str, f"{path}.{kind}")
    if inner:
        rest[kind] = inner
    return ToolCall(identity, name, arguments, notes(rest))


def _read_function_call(rest: Json, path: str) -> ToolCall:
    name = _take(rest, "name", str, path)
    arguments = _take(rest, "arguments", str, path)
    noted: Json = {"type": shapes.FUNCTION_CALL_FIELD}
    if rest:
        noted["function_call"] = rest
    # No ids here: name and name pair the call with the "function" message that answers it.
    return ToolCall(name, name, arguments, notes(noted))


# --- checked access ---------------------------------------------------------------------------------------------------


def _object(value: Any, path: str) -> Json:
    if type(value) is not dict:
        raise InvalidMessageError(f"{path}: expected an object, got {_json_type(value)}")
    return values.copied_object(value, path)


def _take(data: Json, key: str, kind: type, path: str) -> Any:
    if key not in data:
        raise InvalidMessageError(f"{path}.{key}: missing")
    value = data.pop(key)
    if type(value) is not kind:
        raise InvalidMessageError(f"{path}.{key}: expected {kind.__name__}, got {_json_type(value)}")
    return value


def _take_str_or_leave(data: Json, key: str, path: str) -> str | None:
    """The text of an optional field. A null stays where it is and so becomes a note: null is not missing."""
    if data.get(key) is None:
        return None
    text: str = _take(data, key, str, path)
    return text


def _check_optional(data: Json, key: str, kind: type, path: str) -> None:
    value = data.get(key)
    if value is not None and type(value) is not kind:
        raise InvalidMessageError(f"{path}.{key}: expected {kind.__name__} or null, got {_json_type(value)}")


def _json_type(value: Any) -> str:
    return "null" if value is None else type(value).__name__
