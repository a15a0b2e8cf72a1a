"""Message <-> record. With dictform.py and jsontext.py the one codec: size checks and unreadable rows live here.

The stored form is described for readers in other languages in docs/stored-form.md. In short: `content` holds the
readable text; `body` is null for a message that is exactly one plain text, otherwise a JSON object tagged with
`"format": "chatkeep/1"`. The one text of a message is not stored twice: its part then lacks the text in the body,
and the reader takes `content`.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from chatkeep import message as m
from chatkeep import values
from chatkeep.errors import InvalidMessageError, MessageTooLargeError, StoredDataError
from chatkeep.identifiers import MAX_ID_LENGTH, check_message_id
from chatkeep.message import Message, Opaque, Part, Text, ToolResult
from chatkeep.storage.dictform import FORMAT, add_rest, part_to_dict, parts_from_list, take_rest
from chatkeep.storage.jsontext import dump_json, load_json
from chatkeep.storage.record import ConversationRecord, MessageRecord
from chatkeep.times import EARLIEST, format_time, utc

UNREADABLE = "chatkeep.unreadable"
"""`Opaque.type` of a stored row that could not be read, with `on_unreadable="keep"`."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""PostgreSQL refuses NUL in text, and no engine takes a lone surrogate as UTF-8."""


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
    add_rest(body, message)
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
    parts = parts_from_list(data.pop("parts", None), "parts", record.content)
    return Message(record.role, parts, record.message_id, record.created_at, **take_rest(data))


def _unreadable(record: MessageRecord, error: Exception) -> Message:
    raw = {name: getattr(record, name) for name in ("message_id", "role", "content", "body", "created_at")}
    shown = {name: _shown(value) for name, value in raw.items()}
    fields: dict[str, Any] = {}
    for name, check in (("id", check_message_id), ("created_at", utc)):
        value = raw["message_id"] if name == "id" else raw["created_at"]
        try:
            check(value)
        except (ValueError, TypeError):
            # The key of the row in place of what can't be used, so that two broken rows stay two.
            value = f"unreadable-{record.position}" if name == "id" else EARLIEST
        fields[name] = value
    try:
        m.check_role(record.role)
        role = record.role
    except (ValueError, TypeError):
        role = "unknown"
    return Message(role, (Opaque(UNREADABLE, {"reason": str(error), "row": shown}),), **fields)


def _shown(value: object) -> str | None:
    if isinstance(value, dt.datetime) and value.utcoffset() is not None:
        return format_time(value.astimezone(dt.UTC))
    return value if value is None or type(value) is str else repr(value)


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


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
