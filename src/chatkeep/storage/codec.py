"""The one codec: Message <-> dict <-> record. JSON, format versions and size checks live here and nowhere else.

The stored form is described for readers in other languages in docs/stored-form.md. In short: `content` holds the
readable text; `body` is null for a message that is exactly one plain text, otherwise a JSON object tagged with
`"format": "chatkeep/1"`. The one text of a message is not stored twice: its part then lacks the text in the body,
and the reader takes `content`.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import msgspec

from chatkeep import message as m
from chatkeep import values
from chatkeep.errors import InvalidMessageError, MessageTooLargeError, StoredDataError
from chatkeep.identifiers import MAX_ID_LENGTH, check_message_id
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from chatkeep.storage.record import ConversationRecord, MessageRecord

FORMAT = "chatkeep/1"
UNREADABLE = "chatkeep.unreadable"
"""`Opaque.type` of a stored row that could not be read, with `on_unreadable="keep"`."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""PostgreSQL refuses NUL in text, and no engine takes a lone surrogate as UTF-8."""

_MESSAGE_DEPTH = values.MAX_DEPTH + 2 * m.MAX_RESULT_DEPTH + 4
"""Levels of the dict form: a value of the deepest kind inside the deepest tool result of a message's parts."""
_BELOW_MICROSECONDS = re.compile(r"[.,]\d{6}0*[1-9]")

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def dump_json(value: Any) -> str:
    """JSON text that every engine can store, for a value that `values` has checked."""
    try:
        return _encoder.encode(value).decode()
    except (UnicodeEncodeError, OverflowError, ValueError):
        # Lone surrogates and integers beyond 64 bits: the standard library writes both, the first as \udXXX.
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def load_json(text: str) -> Any:
    """The value of a JSON text; ValueError where it is none."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# --- Message <-> dict -------------------------------------------------------------------------------------------------


def message_to_dict(message: Message) -> dict[str, Any]:
    """The dict form: JSON values only, checked again since containers may have been changed after construction."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "role": message.role,
        "id": message.id,
        "created_at": format_time(message.created_at),
        "parts": [part_to_dict(part, f"parts[{index}]") for index, part in enumerate(message.parts)],
    }
    _add_rest(data, message)
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
    parts = _parts_from_list(data.pop("parts", []), "parts", None)
    return Message(role, parts, **fields, **_rest(data))


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
            result = _parts_from_list(data.pop("content"), f"{path}.content", None)
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


# --- Message <-> record -----------------------------------------------------------------------------------------------


def encode(message: Message, path: str, limit: int) -> MessageRecord:
    """The row of a message. Every error is raised here, before any I/O, with the path of the message in the call."""
    if type(message) is not Message:
        raise TypeError(f"{path}: expected a Message, got {type(message).__name__}")
    try:
        content, body = _content_and_body(message)
    except (InvalidMessageError, TypeError) as exc:
        raise type(exc)(f"{path}: {exc}") from None
    except RecursionError:
        raise InvalidMessageError(f"{path}: nested deeper than the stack that is left here allows") from None
    size = _utf8_length(content) + (0 if body is None else _utf8_length(body))
    if size > limit:
        raise MessageTooLargeError(
            f"{path}: the encoded message has {size:,} bytes, the limit of this backend is {limit:,}; "
            f"keep large media elsewhere and store its url",
            size=size,
            limit=limit,
        )
    return MessageRecord(message.id, message.role, content, body, message.created_at)


def _content_and_body(message: Message) -> tuple[str, str | None]:
    parts = message.parts
    if len(parts) == 1 and type(parts[0]) is Text:
        text = parts[0].text
        plain = not (parts[0].extra or message.metadata or message.extra or message.name is not None)
        if plain and not _UNSTORABLE.search(text):
            return text, None
    texts = list(_readable(parts))
    content = "\n".join(texts)
    readable, replaced = _UNSTORABLE.subn("\ufffd", content)
    elide = len(texts) == 1 and not replaced
    body: dict[str, Any] = {
        "format": FORMAT,
        "parts": [
            part_to_dict(part, f"parts[{index}]", elide_text=elide and _bears_text(part))
            for index, part in enumerate(parts)
        ],
    }
    _add_rest(body, message)
    return readable, dump_json(body)


def decode(record: MessageRecord, conversation_id: str, *, keep_unreadable: bool = False) -> Message:
    """The message of a row. A row that can't be read raises StoredDataError or, if asked, becomes an Opaque part."""
    try:
        if record.body is None:
            return _plain_message(record)
        return _decode_body(record)
    except (ValueError, TypeError, AttributeError, RecursionError) as exc:
        if keep_unreadable:
            return _unreadable(record, exc)
        raise StoredDataError(
            f"unreadable message: {exc}", conversation_id=conversation_id, position=record.position
        ) from exc


_TEXT = Text("")
_MESSAGE = Message("user", (_TEXT,))
# Every msgspec struct has __copy__; its type stubs don't say so.
_copy_text: Callable[[Text], Text] = Text.__copy__  # type: ignore[attr-defined]
_copy_message: Callable[[Message], Message] = Message.__copy__  # type: ignore[attr-defined]


def _plain_message(record: MessageRecord) -> Message:
    """A message of one plain text: nearly all rows, and most of the cost of reading a window.

    Copying a message and setting its fields skips the constructors' checks (0.6 against 3.3 µs); whatever these
    few looks don't show to be sound takes the constructors' way.
    """
    role, content, message_id, created_at = record.role, record.content, record.message_id, record.created_at
    if not (
        role in m.KNOWN_ROLES
        and type(content) is str
        and type(message_id) is str
        and message_id.isprintable()
        and 0 < len(message_id) <= MAX_ID_LENGTH
        and type(created_at) is dt.datetime
        and created_at.tzinfo is dt.UTC
    ):
        return Message(role, (Text(content),), message_id, created_at)
    own = msgspec.structs.force_setattr
    text = _copy_text(_TEXT)
    own(text, "text", content)
    own(text, "extra", {})
    message = _copy_message(_MESSAGE)
    own(message, "role", role)
    own(message, "parts", (text,))
    own(message, "id", message_id)
    own(message, "created_at", created_at)
    own(message, "metadata", {})
    own(message, "extra", {})
    return message


def _decode_body(record: MessageRecord) -> Message:
    if not isinstance(record.body, str):
        raise InvalidMessageError(f"body: expected JSON text, got {type(record.body).__name__}")
    data = load_json(record.body)
    if type(data) is not dict:
        raise InvalidMessageError(f"body: expected an object, got {type(data).__name__}")
    written = data.pop("format", None)
    if written != FORMAT:
        raise InvalidMessageError(f"format {written!r} is not known here; this package reads {FORMAT!r}")
    parts = _parts_from_list(data.pop("parts", None), "parts", record.content)
    return Message(record.role, parts, record.message_id, record.created_at, **_rest(data))


def _unreadable(record: MessageRecord, error: Exception) -> Message:
    raw = {name: getattr(record, name) for name in ("message_id", "role", "content", "body", "created_at")}
    shown = {name: value if value is None or type(value) is str else repr(value) for name, value in raw.items()}
    fields: dict[str, Any] = {}
    for name, check in (("id", check_message_id), ("created_at", m.utc)):
        value = raw["message_id"] if name == "id" else raw["created_at"]
        try:
            check(value)
        except (ValueError, TypeError):
            # The key of the row in place of what can't be used, so that two broken rows stay two.
            value = f"unreadable-{record.position}" if name == "id" else m.EARLIEST
        fields[name] = value
    try:
        m.check_role(record.role)
        role = record.role
    except (ValueError, TypeError):
        role = "unknown"
    return Message(role, (Opaque(UNREADABLE, {"reason": str(error), "row": shown}),), **fields)


def decode_metadata(record: ConversationRecord, *, keep_unreadable: bool = False) -> dict[str, Any]:
    """A conversation's metadata. What is no JSON object raises StoredDataError or, if asked, is kept as text."""
    if record.metadata is None:
        return {}
    try:
        value = load_json(record.metadata)
        if type(value) is dict:
            return values.copied_object(value, "metadata")
        reason = f"expected an object, got {type(value).__name__}"
    except (ValueError, TypeError, RecursionError) as exc:
        reason = str(exc)
    if keep_unreadable:
        return {UNREADABLE: record.metadata if type(record.metadata) is str else repr(record.metadata)}
    raise StoredDataError(f"unreadable conversation metadata: {reason}", conversation_id=record.conversation_id)


# --- helpers ----------------------------------------------------------------------------------------------------------


def format_time(moment: dt.datetime) -> str:
    """UTC with six digits, of one width, so that text order is time order: 2026-11-30T17:51:59.123456Z."""
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def parse_time(value: object, path: str) -> dt.datetime:
    """An aware datetime from ISO 8601 text."""
    if type(value) is not str:
        raise InvalidMessageError(f"{path}: expected ISO 8601 text, got {type(value).__name__}")
    if _BELOW_MICROSECONDS.search(value):
        raise InvalidMessageError(f"{path}: {value!r} has more than microseconds, which would be lost")
    try:
        return dt.datetime.fromisoformat(value)
    except ValueError as exc:
        raise InvalidMessageError(f"{path}: {value!r} is not an ISO 8601 time") from exc


def same_content(one: MessageRecord, other: MessageRecord) -> bool:
    """Whether two rows hold the same message: all but the creation time, which a repeated call may set anew."""
    if one.role != other.role or one.content != other.content:
        return False
    if one.body == other.body:
        return True
    if one.body is None or other.body is None:
        return False
    # The order of keys in metadata is no difference; 1, 1.0 and true are, although Python calls them equal.
    return canonical(one.body) == canonical(other.body)


def canonical(body: str) -> str:
    """One text for all JSON texts of a body."""
    return json.dumps(load_json(body), sort_keys=True)


def _readable(parts: Iterable[Part]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolResult):
            if isinstance(part.content, str):
                yield part.content
            else:
                yield from _readable(part.content)


def _bears_text(part: Part) -> bool:
    return isinstance(part, Text) or (isinstance(part, ToolResult) and isinstance(part.content, str))


def _add_rest(data: dict[str, Any], message: Message) -> None:
    _set(data, "name", message.name)
    if message.metadata:
        data["metadata"] = values.copied_object(message.metadata, "metadata")
    if message.extra:
        data.update(values.copied_object(message.extra, "extra"))


def _rest(data: dict[str, Any]) -> dict[str, Any]:
    name = _take_optional(data, "name", str, "message")
    metadata = _take(data, "metadata", dict, "message") if "metadata" in data else {}
    data.pop("format", None)
    return {"name": name, "metadata": metadata, "extra": data}


def _parts_from_list(value: Any, path: str, content: str | None) -> tuple[Part, ...]:
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


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
