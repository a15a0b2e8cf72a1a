"""Message -> Anthropic's messages and blocks. What the format can't say is refused, or left out when asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chatkeep.formats.anthropic import reading, shapes
from chatkeep.formats.shared.encodings import to_base64
from chatkeep.formats.shared.losses import Losses
from chatkeep.formats.shared.objects import MISSING, Json
from chatkeep.formats.shared.parts import check_readable, named, parsed_arguments, placed, write_opaque, written
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

REPLY_FIELDS = frozenset(
    {"id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container", "diagnostics"}
    | {"context_management"}
)
"""Fields of a reply that a request may not send back."""

INVALID_JSON = "INVALID_JSON"
"""Where `drop_unsupported` puts arguments that are no JSON object: a model that reads it sees its mistake."""


@dataclass(frozen=True)
class BlockLosses(Losses):
    """With what is known of the messages before."""

    reply_fields: bool = True
    """Write the fields that only replies have."""
    tool_names: dict[str, str] = field(default_factory=dict)
    """The tools of the calls written so far, by call id: a result needs no name where its call tells it."""


def write_message(message: Message, path: str, losses: BlockLosses) -> Json | None:
    """The object of one message; None where nothing of it is left."""
    role = shapes.WRITTEN_ROLES.get(message.role)
    if role is None:
        losses.refuse(f"{path}role", f"Anthropic knows no role {message.role!r}; it has {', '.join(shapes.ROLES)}")
        return None
    noted = losses.notes(message.extra, f"{path}extra")
    form, _ = noted.pop("content", None), noted.pop("role", None)
    if not losses.reply_fields:
        noted = {key: value for key, value in noted.items() if key not in REPLY_FIELDS}
    blocks = write_blocks(message, path, losses)
    if message.parts and not blocks:
        return None
    made = {"role": role, "content": content_form(blocks, form, f"{losses.path(path)}.content", losses)}
    losses.merge(made, noted, losses.path(path))
    check_readable(message, made, path, losses, lambda item: reading.read_message(item, "message", {}))
    return made


def write_blocks(message: Message, path: str, losses: BlockLosses) -> list[Json]:
    """The blocks of one message."""
    if message.name is not None:
        losses.refuse(f"{path}name", "Anthropic's messages have no name")
    parts = placed(message.parts, f"{path}parts")
    if message.role == "tool":
        if not message.tool_results:
            losses.refuse(f"{path}parts", "a message of role 'tool' without results")
        for where, part in parts:
            if not isinstance(part, ToolResult):
                losses.refuse(
                    where, f"{named(part)} in a message of role 'tool', which is tool results and nothing else"
                )
        parts = [(where, part) for where, part in parts if isinstance(part, ToolResult)]
    for call in message.tool_calls:
        losses.tool_names[call.id] = call.name
    return written(parts, write_block, losses)


def content_form(blocks: list[Json], form: Any, path: str, losses: Losses) -> Any:
    """The form that reading takes for granted, or the noted one."""
    plain = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    if (form == shapes.FORM_LIST and plain) or (form == shapes.APART and blocks and not plain):
        return blocks
    if form is not None:
        losses.refuse(path, f"{form!r} doesn't fit the content that the message has")
    return blocks[0]["text"] if plain else blocks


def write_block(part: Part, path: str, losses: Losses) -> Json | None:
    """One element of a content list, None where it was left out."""
    if isinstance(part, Opaque):
        if part.type == shapes.OPAQUE_BLOCK:
            return write_opaque(part, path, losses, reading.read_block)
        losses.refuse(path, f"{named(part)} is no content of Anthropic's format")
        return None
    if isinstance(part, Thinking):
        return _write_thinking(part, path, losses)
    noted = losses.notes(part.extra, f"{path}.extra")
    made: Json | None
    if isinstance(part, Text):
        made = {"type": "text", "text": part.text}
    elif isinstance(part, Media):
        made = _write_media(part, noted, path, losses)
    elif isinstance(part, ToolCall):
        made = _write_call(part, path, losses)
    else:
        made = _write_result(part, noted, path, losses)
    return None if made is None else losses.merge(made, noted, losses.path(path))


def _write_thinking(part: Thinking, path: str, losses: Losses) -> Json | None:
    foreign = losses.foreign(part.extra)
    noted = losses.notes(part.extra, f"{path}.extra")
    if foreign:
        return None  # another provider's reasoning, under its signature
    made: Json = {"type": "thinking", "thinking": part.text}
    if part.signature is not None:
        made["signature"] = part.signature
    elif noted.get("signature") == MISSING:
        del noted["signature"]
    elif "signature" not in noted:
        losses.refuse(f"{path}.signature", "Anthropic takes back only thinking that it has signed")
        return None
    return losses.merge(made, noted, losses.path(path))


def _write_call(part: ToolCall, path: str, losses: Losses) -> Json:
    arguments = parsed_arguments(part.arguments)
    if isinstance(arguments, str):
        losses.refuse(f"{path}.arguments", arguments)
        arguments = {INVALID_JSON: part.arguments}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments}


def _write_result(part: ToolResult, noted: Json, path: str, losses: Losses) -> Json:
    made: Json = {"type": "tool_result", "tool_use_id": part.call_id}
    names = losses.tool_names if isinstance(losses, BlockLosses) else {}
    if part.name is not None and names.get(part.call_id) != part.name:
        losses.refuse(f"{path}.name", "Anthropic's results have no name, and no call here tells it")
    if part.is_error:
        made["is_error"] = True
    if noted.get("content") == MISSING and part.content == "":
        del noted["content"]
    elif isinstance(part.content, str):
        made["content"] = part.content
    else:
        made["content"] = written(placed(part.content, f"{path}.content"), write_block, losses)
    return made


def _write_media(part: Media, noted: Json, path: str, losses: Losses) -> Json | None:
    kind = noted.pop("type", None) or shapes.block_type(part)
    source: Json | None = None
    if part.url is not None:
        if kind == "image" or (kind == "document" and part.mime_type == shapes.PDF):
            source = {"type": "url", "url": part.url}
    elif part.data is not None and kind in ("image", "document"):
        source = _source(kind, part.mime_type, part.data)
    if source is None:
        held = "a link to" if part.data is None else "data of"
        losses.refuse(path, f"Anthropic's format has no place for {held} {part.mime_type}")
        return None
    made = {"type": kind, "source": source}
    if part.name is not None and kind == "document":
        made["title"] = part.name
    elif part.name is not None:
        losses.refuse(f"{path}.name", "an image has no name")
    return made


def _source(kind: str, mime_type: str, data: bytes) -> Json | None:
    if kind == "image" or mime_type == shapes.PDF:
        return {"type": "base64", "media_type": mime_type, "data": to_base64(data)}
    try:
        return {"type": "text", "media_type": shapes.PLAIN_TEXT, "data": data.decode("utf-8", "surrogatepass")}
    except UnicodeDecodeError:
        return None
