"""Message and its parts: immutable values and the rules that a storable message obeys. No storage, no JSON text.

The dict form of a message (`to_dict`, `from_dict`) is described in docs/stored-form.md and its JSON Schema.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from chatkeep import values
from chatkeep.errors import InvalidMessageError, UnstorableValueError
from chatkeep.identifiers import check_message_id, new_message_id
from chatkeep.times import utc

SYSTEM = "system"
USER = "user"
ASSISTANT = "assistant"
TOOL = "tool"
KNOWN_ROLES = (SYSTEM, USER, ASSISTANT, TOOL)
MAX_ROLE_LENGTH = 64
MAX_RESULT_DEPTH = 32
"""Tool results inside of tool results; no provider nests more than one."""


class Text(msgspec.Struct, frozen=True):
    """Plain text. `extra` keeps JSON fields that chatkeep doesn't know, such as a provider's cache marks."""

    text: str
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        values.require_str(self.text, "text")
        _own_extra(self, TEXT_FIELDS)


class Thinking(msgspec.Struct, frozen=True):
    """A model's reasoning with the signature that the provider wants back unchanged."""

    text: str
    signature: str | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        values.require_str(self.text, "text")
        values.require_str(self.signature, "signature", optional=True)
        _own_extra(self, THINKING_FIELDS)


class Media(msgspec.Struct, frozen=True):
    """An image, sound or document: its bytes (`data`) or its address (`url`), exactly one of the two."""

    mime_type: str
    data: bytes | None = None
    url: str | None = None
    name: str | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        values.require_str(self.mime_type, "mime_type")
        values.require_str(self.url, "url", optional=True)
        values.require_str(self.name, "name", optional=True)
        if self.data is not None and type(self.data) is not bytes:
            raise UnstorableValueError(f"data: expected bytes, got {type(self.data).__name__}")
        if (self.data is None) == (self.url is None):
            raise InvalidMessageError("Media needs exactly one of data (bytes) and url (str)")
        _own_extra(self, MEDIA_FIELDS)


class ToolCall(msgspec.Struct, frozen=True):
    """A call the model asks for. `arguments` is the JSON text as the model gave it, kept to the letter."""

    id: str
    name: str
    arguments: str = "{}"
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        values.require_str(self.id, "id")
        values.require_str(self.name, "name")
        if not isinstance(self.arguments, str):
            raise UnstorableValueError(
                f"arguments: expected the JSON text as the model gave it (str), got {type(self.arguments).__name__}; "
                f"json.dumps a value of your own"
            )
        values.require_str(self.arguments, "arguments")
        _own_extra(self, TOOL_CALL_FIELDS)


class ToolResult(msgspec.Struct, frozen=True):
    """The answer to a call: text, or parts for results that hold media."""

    call_id: str
    content: str | tuple[Part, ...] = ""
    name: str | None = None
    is_error: bool = False
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        values.require_str(self.call_id, "call_id")
        values.require_str(self.name, "name", optional=True)
        if type(self.is_error) is not bool:
            raise UnstorableValueError(f"is_error: expected bool, got {type(self.is_error).__name__}")
        if isinstance(self.content, str):
            values.require_str(self.content, "content")
        else:
            msgspec.structs.force_setattr(self, "content", _own_parts(self.content, "content"))
            if _result_depth(self) > MAX_RESULT_DEPTH:
                raise InvalidMessageError(f"content: more than {MAX_RESULT_DEPTH} levels of tool results")
        _own_extra(self, TOOL_RESULT_FIELDS)

    @property
    def text(self) -> str:
        """The text of the result, `""` where it has none."""
        return self.content if isinstance(self.content, str) else _joined_text(self.content)


class Opaque(msgspec.Struct, frozen=True):
    """Anything a provider invents: `type` names it, `data` is any JSON value and comes back as it went in."""

    type: str
    data: Any = None

    def __post_init__(self) -> None:
        values.require_str(self.type, "type")
        msgspec.structs.force_setattr(self, "data", values.copied_json(self.data, "data"))


Part: TypeAlias = Text | Thinking | Media | ToolCall | ToolResult | Opaque
PART_TYPES: tuple[type, ...] = (Text, Thinking, Media, ToolCall, ToolResult, Opaque)

# `extra` may not shadow a field: the dict form holds both side by side. "type" tells the kinds apart there.
TEXT_FIELDS = frozenset({"type", "text"})
THINKING_FIELDS = frozenset({"type", "text", "signature"})
MEDIA_FIELDS = frozenset({"type", "mime_type", "data", "url", "name"})
TOOL_CALL_FIELDS = frozenset({"type", "id", "name", "arguments"})
TOOL_RESULT_FIELDS = frozenset({"type", "call_id", "content", "name", "is_error"})
MESSAGE_FIELDS = frozenset({"format", "role", "parts", "id", "created_at", "name", "metadata"})


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation: immutable, compared by value.

    `id` is a UUIDv7 and `created_at` the present time unless given. `created_at` is aware and becomes UTC with
    microseconds; naive times are refused. `metadata` is a JSON object; tuples, dates and other values that would not
    come back equal raise a TypeError that names their path, NaN and infinities a ValueError. The message holds copies
    of the containers handed in. `extra` keeps JSON fields of the dict form that chatkeep doesn't know.
    """

    role: str
    parts: tuple[Part, ...] = ()
    id: str = msgspec.field(default_factory=new_message_id)
    created_at: dt.datetime = msgspec.field(default_factory=lambda: dt.datetime.now(dt.UTC))
    name: str | None = None
    metadata: dict[str, Any] = {}
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        check_role(self.role)
        check_message_id(self.id)
        values.require_str(self.name, "name", optional=True)
        own = msgspec.structs.force_setattr
        if type(self.parts) is not tuple or self.parts:
            own(self, "parts", _own_parts(self.parts, "parts"))
        own(self, "created_at", utc(self.created_at))
        # Also where it is empty: the caller may fill it later.
        own(self, "metadata", values.copied_object(self.metadata, "metadata"))
        _own_extra(self, MESSAGE_FIELDS)

    @classmethod
    def system(cls, content: Content, **fields: Any) -> Message:
        """A system message from text or parts; `fields` are `id`, `created_at`, `name`, `metadata`."""
        return cls(SYSTEM, _given(content), **fields)

    @classmethod
    def user(cls, content: Content, **fields: Any) -> Message:
        """A user message from text or parts; `fields` are `id`, `created_at`, `name`, `metadata`."""
        return cls(USER, _given(content), **fields)

    @classmethod
    def assistant(
        cls, content: Content | None = None, *, tool_calls: Iterable[ToolCall] = (), **fields: Any
    ) -> Message:
        """An assistant message from text or parts, with the calls it asks for behind them."""
        return cls(ASSISTANT, (*_content(content), *tool_calls), **fields)

    @classmethod
    def tool(
        cls,
        content: Content,
        *,
        call_id: str,
        name: str | None = None,
        is_error: bool = False,
        **fields: Any,
    ) -> Message:
        """A tool message that answers the call `call_id`; `name` is the tool's.

        Its text is that of the result: `message.tool_results[0].text`; `message.text` is `""`.
        """
        body = content if isinstance(content, str) else _given(content)
        return cls(TOOL, (ToolResult(call_id, body, name, is_error),), **fields)

    @property
    def text(self) -> str:
        """The text parts joined as they stand; `""` where there are none."""
        return _joined_text(self.parts)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls the message asks for, in order."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def tool_results(self) -> list[ToolResult]:
        """The results the message brings, in order."""
        return [part for part in self.parts if isinstance(part, ToolResult)]

    def to_dict(self) -> dict[str, Any]:
        """The message as JSON values, tagged with format and version; `from_dict` gives an equal message."""
        from chatkeep.storage.dictform import message_to_dict

        return message_to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Message:
        """The message of a dict made by `to_dict`, perhaps through JSON.

        Unknown fields are kept in `extra`. Raises InvalidMessageError with the path of what is wrong.
        """
        from chatkeep.storage.dictform import message_from_dict

        return message_from_dict(data)


Content: TypeAlias = str | Part | Sequence[Part]


def check_role(role: object) -> None:
    """Roles are open: 1 to 64 characters without control characters, surrogates or white space at the ends."""
    if type(role) is str and role in KNOWN_ROLES:
        return
    values.require_str(role, "role")
    text = str(role)
    if not 1 <= len(text) <= MAX_ROLE_LENGTH or values.UNSAFE_IN_NAMES.search(text) or text != text.strip():
        raise InvalidMessageError(f"role {role!r}: 1 to {MAX_ROLE_LENGTH} characters, no control characters")


def _given(content: Content) -> tuple[Part, ...]:
    if content is None:
        raise UnstorableValueError("content: expected str or parts, got None")
    return _content(content)


def _content(content: Content | None) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, PART_TYPES):
        return (content,)  # type: ignore[return-value]
    return _own_parts(content, "content")


def _own_parts(parts: object, path: str) -> tuple[Part, ...]:
    if isinstance(parts, (str, bytes, dict)) or not isinstance(parts, Iterable):
        raise UnstorableValueError(f"{path}: expected parts such as Text(...), got {type(parts).__name__}")
    owned = tuple(parts)
    for index, part in enumerate(owned):
        if type(part) not in PART_TYPES:
            raise UnstorableValueError(f"{path}[{index}]: expected a part such as Text(...), got {type(part).__name__}")
    return owned


def _own_extra(struct: Any, fields: frozenset[str]) -> None:
    if type(struct.extra) is dict and not struct.extra:
        msgspec.structs.force_setattr(struct, "extra", {})
        return
    extra = values.copied_object(struct.extra, "extra")
    shadowed = sorted(fields & extra.keys())
    if shadowed:
        raise InvalidMessageError(f"extra: {shadowed[0]!r} is a field of {type(struct).__name__}; set the field itself")
    msgspec.structs.force_setattr(struct, "extra", extra)


def _result_depth(result: ToolResult) -> int:
    # Bounded: the results inside were checked when they were made.
    inner = (_result_depth(part) for part in result.content if isinstance(part, ToolResult))
    return 1 + max(inner, default=0)


def _joined_text(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))
