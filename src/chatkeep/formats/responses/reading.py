"""Items of the Responses API -> Messages. What the model gave in one go is one Message; its items are its parts."""

from __future__ import annotations

from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.formats.responses import shapes
from chatkeep.formats.shared.encodings import extension, from_data_url, linked_image_type
from chatkeep.formats.shared.objects import (
    Json,
    check_optional,
    json_type,
    list_of,
    message_at,
    object_at,
    take,
    take_filled_list,
    take_or_leave,
)
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

notes = shapes.NOTES.holding


def read_items(items: Any, path: str) -> list[Message]:
    """The Messages of a list of items: items of the model behind one another are one."""
    read: list[Message] = []
    spoken: list[Part] = []
    for index, item in enumerate(list_of(items, path, "a list of items")):
        found = _read_item(item, f"{path}[{index}]", goes_on=bool(spoken) and shapes.kind_of(spoken[-1]) == "message")
        if not isinstance(found, Message):
            spoken += found
            continue
        if spoken:
            read.append(Message("assistant", tuple(spoken)))
            spoken = []
        read.append(found)
    return [*read, Message("assistant", tuple(spoken))] if spoken else read


def _read_item(item: Any, path: str, *, goes_on: bool) -> Message | list[Part]:
    """A Message, or parts of what the model says; `goes_on`: these would go on with the message item before."""
    rest = message_at(item, path)
    # A message may go without its type.
    kind = rest.get("type", "message" if "role" in rest else None)
    if type(kind) is not str:
        found = f"expected str, got {json_type(kind)}" if "type" in rest else "missing"
        raise InvalidMessageError(f"{path}.type: {found}")
    if kind == "message":
        return _read_message(item, rest, path, goes_on)
    del rest["type"]
    if kind in shapes.CALLS:
        return [read_call(kind, rest, path)]
    if kind == "reasoning":
        return _read_reasoning(item, rest, path)
    if kind in shapes.RESULTS and rest.get("call_id") is not None:
        return Message("tool", (read_result(kind, rest, path),))
    part = Opaque(shapes.OPAQUE_ITEM, item)
    return Message("tool", (part,)) if shapes.answers(kind) else [part]


def _read_message(item: Any, rest: Json, path: str, goes_on: bool) -> Message | list[Part]:
    role = take(rest, "role", str, path)
    if role not in shapes.ROLES:
        raise InvalidMessageError(f"{path}.role: expected one of {', '.join(shapes.ROLES)}, got {role!r:.40}")
    if "content" not in rest:
        raise InvalidMessageError(f"{path}.content: missing")
    content = rest.pop("content")
    if type(content) is str:
        parts: list[Part] = [Text(content)]
    else:
        parts = _read_contents(content, f"{path}.content", shapes.text_type(role))
        if len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].extra:
            rest["content"] = shapes.FORM_LIST
    if role != "assistant":
        return Message(role, tuple(parts), extra=notes(rest))
    if not parts or isinstance(parts[0], Opaque):  # an Opaque has no place for the rest of the item
        return [Opaque(shapes.OPAQUE_ITEM, item)]
    return [_begins(parts[0], rest), *parts[1:]] if rest or goes_on else parts


def _begins(part: Part, rest: Json) -> Part:
    """The first part of an item, with the rest of the item."""
    if isinstance(part, Text):
        return Text(part.text, {**part.extra, shapes.ITEM: rest})
    if isinstance(part, Thinking):
        return Thinking(part.text, part.signature, {**part.extra, shapes.ITEM: rest})
    assert isinstance(part, Media)
    return Media(part.mime_type, part.data, part.url, part.name, {**part.extra, shapes.ITEM: rest})


def _read_contents(content: Any, path: str, text_type: str) -> list[Part]:
    if type(content) is not list:
        raise InvalidMessageError(f"{path}: expected str or list, got {json_type(content)}")
    return [read_content(part, f"{path}[{index}]", text_type) for index, part in enumerate(content)]


def read_content(content: Any, path: str, text_type: str) -> Part:
    """One element of a content list; `text_type` is the one that texts have here by default."""
    rest = object_at(content, path)
    kind = take(rest, "type", str, path)
    if kind in ("input_text", "output_text", "refusal"):
        text = take(rest, "refusal" if kind == "refusal" else "text", str, path)
        return Text(text, notes(rest if kind == text_type else {"type": kind, **rest}))
    media = None
    if kind == "input_image":
        media = _read_image(rest, path)
    elif kind == "input_file":
        media = _read_file(rest, path)
    return media or Opaque(shapes.OPAQUE_CONTENT, content)


def _read_image(rest: Json, path: str) -> Media | None:
    check_optional(rest, "detail", str, path)
    check_optional(rest, "file_id", str, path)
    url = take_or_leave(rest, "image_url", str, path)
    if url is None:
        return None
    decoded = from_data_url(url)
    if decoded is None:
        return Media(linked_image_type(url), url=url, extra=notes(rest))
    return _typed("input_image", Media(*decoded), rest)


def _read_file(rest: Json, path: str) -> Media | None:
    """None for what is named by its id, encoded otherwise, or both a link and bytes."""
    name = take_or_leave(rest, "filename", str, path)
    encoded = take_or_leave(rest, "file_data", str, path)
    check_optional(rest, "file_id", str, path)
    link = take_or_leave(rest, "file_url", str, path)
    if link is not None and encoded is None:
        mime_type = linked_image_type(link)
        if mime_type == "image/*":
            mime_type = "application/pdf" if extension(link) == "pdf" else "application/octet-stream"
        return _typed("input_file", Media(mime_type, url=link, name=name), rest)
    decoded = from_data_url(encoded or "")
    if decoded is None or link is not None:
        return None
    return _typed("input_file", Media(*decoded, name=name), rest)


def _typed(kind: str, media: Media, rest: Json) -> Media:
    if shapes.media_type(media) != kind:
        rest["type"] = kind
    return Media(media.mime_type, media.data, media.url, media.name, notes(rest))


def read_call(kind: str, rest: Json, path: str) -> ToolCall:
    """A call of a function, or of a custom tool, whose free text becomes `arguments` as it is."""
    call_id, name = take(rest, "call_id", str, path), take(rest, "name", str, path)
    arguments = take(rest, shapes.CALLS[kind], str, path)
    return ToolCall(call_id, name, arguments, notes(rest if kind == "function_call" else {"type": kind, **rest}))


def read_result(kind: str, rest: Json, path: str) -> ToolResult:
    """The output of a call."""
    call_id, name = take(rest, "call_id", str, path), take_or_leave(rest, "name", str, path)
    if "output" not in rest:
        raise InvalidMessageError(f"{path}.output: missing")
    output = rest.pop("output")
    content = output if type(output) is str else tuple(_read_contents(output, f"{path}.output", "input_text"))
    return ToolResult(
        call_id, content, name, extra=notes(rest if kind == shapes.RESULTS[0] else {"type": kind, **rest})
    )


def _read_reasoning(item: Any, rest: Json, path: str) -> list[Part]:
    """A Thinking for each text of the summary, then of the content; the first has the encrypted reasoning."""
    summary = _read_thoughts(take(rest, "summary", list, path), f"{path}.summary", shapes.SUMMARY)
    content = _read_thoughts(take_filled_list(rest, "content", path), f"{path}.content", shapes.CONTENT)
    signature = take_or_leave(rest, "encrypted_content", str, path)
    if summary is None or content is None:
        return [Opaque(shapes.OPAQUE_ITEM, item)]
    if not summary and not content:
        rest["summary"] = shapes.NO_TEXT
    first, *others = [*summary, *content] or [Thinking("")]
    return [_begins(Thinking(first.text, signature, first.extra), rest), *others]


def _read_thoughts(items: list[Any], path: str, kind: str) -> list[Thinking] | None:
    """None where one is of a type of tomorrow."""
    found = []
    for index, item in enumerate(items):
        where = f"{path}[{index}]"
        rest = object_at(item, where)
        if take(rest, "type", str, where) != kind:
            return None
        noted = {} if kind == shapes.SUMMARY else {"type": kind}
        found.append(Thinking(take(rest, "text", str, where), extra=notes({**noted, **rest})))
    return found
