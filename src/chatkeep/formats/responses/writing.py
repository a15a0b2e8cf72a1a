"""Messages -> items of the Responses API. What the format can't say is refused, or left out when asked."""

from __future__ import annotations

from functools import partial
from typing import Any

from chatkeep.formats.responses import reading, shapes
from chatkeep.formats.shared.encodings import data_url, from_data_url
from chatkeep.formats.shared.losses import Losses
from chatkeep.formats.shared.objects import Json
from chatkeep.formats.shared.parts import Placed, check_readable, is_result, named, placed, runs, write_opaque, written
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult


def write_message(message: Message, path: str, losses: Losses) -> list[Json]:
    """The items of one message."""
    if message.name is not None:
        losses.refuse(f"{path}name", "a message has no name there")
    if message.role not in (*shapes.ROLES, "tool"):
        losses.refuse(f"{path}role", f"there is no role {message.role!r}; there are {', '.join(shapes.ROLES)}")
        return []
    if not message.parts and message.role in ("assistant", "tool"):
        losses.refuse(f"{path}parts", f"a message of role {message.role!r} without parts makes no item")
        return []
    noted = losses.notes(message.extra, f"{path}extra")
    parted = runs(placed(message.parts, f"{path}parts"))
    alone = message.role in ("user", "system", "developer") and sum(not is_result(run) for run in parted) == 1
    if noted and not alone:
        losses.refuse(losses.path(path), "belongs to one message item, and the parts make another number of them")
        noted = {}
    made: list[Json] = []
    for run in parted:
        if is_result(run):
            made += written(run, _write_result, losses)
        elif message.role == "assistant":
            made += _write_spoken(run, losses)
        elif message.role == "tool":
            made += written(run, _write_answer, losses)
        else:
            made += _write_given(message.role, run, noted, path, losses)
    check_readable(message, made, path, losses, lambda items: reading.read_items(items, "items"))
    return made


def _write_given(role: str, run: list[Placed], noted: Json, path: str, losses: Losses) -> list[Json]:
    """The item of what a user, or the application, says."""
    content = written(run, partial(write_content, role=role), losses)
    if run and not content:
        return []
    return [_message_item(role, content, noted, losses.path(path), losses)]


def _message_item(role: str, content: list[Json], rest: Json, path: str, losses: Losses) -> Json:
    plain = len(content) == 1 and content[0].keys() == {"type", "text"} and content[0]["type"] == shapes.text_type(role)
    form = rest.pop("content", None)
    if form is not None and not (form == shapes.FORM_LIST and plain):
        losses.refuse(f"{path}.content", f"{form!r} doesn't fit the content that the message has")
    as_list = form == shapes.FORM_LIST or not plain
    return losses.merge({"role": role, "content": content if as_list else content[0]["text"]}, rest, path)


def _write_spoken(run: list[Placed], losses: Losses) -> list[Json]:
    """The items of what the model says: a message or a reasoning goes on until another begins or another part comes."""
    items: list[Json] = []
    groups: list[list[Placed]] = []
    for item in run:
        part = item[1]
        goes_on = (
            bool(groups)
            and shapes.ITEM not in getattr(part, "extra", {})
            and shapes.kind_of(part) in ("reasoning", "message")
            and shapes.kind_of(part) == shapes.kind_of(groups[-1][0][1])
        )
        if goes_on:
            groups[-1].append(item)
        else:
            groups.append([item])
    for group in groups:
        kind = shapes.kind_of(group[0][1])
        if kind == "message":
            items += _write_said(group, losses)
        elif kind == "reasoning":
            items += _write_reasoning(group, losses)
        else:
            items += written(group, _write_item, losses)
    return items


def _write_said(group: list[Placed], losses: Losses) -> list[Json]:
    path, first = group[0]
    rest = losses.notes(getattr(first, "extra", {}), f"{path}.extra", shapes.ITEM)
    content = written(group, partial(write_content, role="assistant"), losses)
    return [_message_item("assistant", content, rest, f"{path}.extra.{shapes.ITEM}", losses)] if content else []


def _write_reasoning(group: list[Placed], losses: Losses) -> list[Json]:
    path, first = group[0]
    assert isinstance(first, Thinking)
    if shapes.ITEM not in first.extra:
        losses.refuse(path, "reasoning goes back only in an item that OpenAI made")
        return []
    rest = losses.notes(first.extra, f"{path}.extra", shapes.ITEM)
    where = f"{path}.extra.{shapes.ITEM}"
    made: Json = {"type": "reasoning", "summary": []}
    if rest.get("summary") == shapes.NO_TEXT and len(group) == 1 and first.text == "":
        del rest["summary"]
        losses.notes(first.extra, f"{path}.extra")
        group = []
    for place, part in group:
        assert isinstance(part, Thinking)
        noted = losses.notes(part.extra, f"{place}.extra")
        kind = noted.pop("type", shapes.SUMMARY)
        if kind not in (shapes.SUMMARY, shapes.CONTENT):
            losses.refuse(f"{losses.path(place)}.type", f"{kind!r} is no type of reasoning")
            kind = shapes.SUMMARY
        if kind == shapes.SUMMARY and "content" in made:
            losses.refuse(place, "a summary behind the content of a reasoning")
        if part.signature is not None and part is not first:
            losses.refuse(f"{place}.signature", "the first part of a reasoning has the encrypted one")
        texts = made.setdefault("summary" if kind == shapes.SUMMARY else "content", [])
        texts.append(losses.merge({"type": kind, "text": part.text}, noted, losses.path(place)))
    if first.signature is not None:
        made["encrypted_content"] = first.signature
    return [losses.merge(made, rest, where)]


def _write_item(part: Part, path: str, losses: Losses) -> Json | None:
    if isinstance(part, Opaque):
        return _write_opaque_item(part, path, losses)
    assert isinstance(part, ToolCall)
    noted = losses.notes(part.extra, f"{path}.extra")
    kind = noted.pop("type", "function_call")
    if kind not in shapes.CALLS:
        losses.refuse(f"{losses.path(path)}.type", f"{kind!r} is no type of call")
        kind = "function_call"
    made = {"type": kind, "call_id": part.id, "name": part.name, shapes.CALLS[kind]: part.arguments}
    return losses.merge(made, noted, losses.path(path))


def _write_opaque_item(part: Opaque, path: str, losses: Losses) -> Json | None:
    if part.type != shapes.OPAQUE_ITEM:
        losses.refuse(path, f"{named(part)} is no item of {losses.kept.label}")
        return None

    def read(data: Any, where: str) -> Part | None:
        messages = reading.read_items([data], where)
        return messages[0].parts[0] if len(messages) == 1 and len(messages[0].parts) == 1 else None

    return write_opaque(part, path, losses, read)


def _write_answer(part: Part, path: str, losses: Losses) -> Json | None:
    """What stands beside results in a message of role "tool"."""
    if isinstance(part, Opaque) and type(part.data) is dict and shapes.answers(part.data.get("type")):
        return _write_opaque_item(part, path, losses)
    losses.refuse(path, f"{named(part)}: a message of role 'tool' is results and nothing else")
    return None


def _write_result(part: Part, path: str, losses: Losses) -> Json:
    assert isinstance(part, ToolResult)
    noted = losses.notes(part.extra, f"{path}.extra")
    kind = noted.pop("type", shapes.RESULTS[0])
    if kind not in shapes.RESULTS:
        losses.refuse(f"{losses.path(path)}.type", f"{kind!r} is no type of output")
        kind = shapes.RESULTS[0]
    if part.is_error:
        losses.refuse(f"{path}.is_error", f"{losses.kept.label} has no mark for failed calls; say it in the content")
    made: Json = {"type": kind, "call_id": part.call_id, "output": part.content}
    if not isinstance(part.content, str):
        inner = placed(part.content, f"{path}.content")
        made["output"] = written(inner, partial(write_content, role="tool"), losses)
    if part.name is not None:
        made["name"] = part.name
    return losses.merge(made, noted, losses.path(path))


def write_content(part: Part, path: str, losses: Losses, role: str) -> Json | None:
    """One element of a content list, None where it was left out."""
    default = shapes.text_type(role)
    if isinstance(part, Text):
        noted = losses.notes(part.extra, f"{path}.extra")
        kind = noted.pop("type", default)
        if kind not in ("input_text", "output_text", "refusal"):
            losses.refuse(f"{losses.path(path)}.type", f"{kind!r} is no type of text")
            kind = default
        made = {"type": kind, "refusal" if kind == "refusal" else "text": part.text}
        return losses.merge(made, noted, losses.path(path))
    if isinstance(part, Media):
        return _write_media(part, path, losses)
    if isinstance(part, Opaque) and part.type == shapes.OPAQUE_CONTENT:
        return write_opaque(part, path, losses, lambda data, where: reading.read_content(data, where, default))
    losses.refuse(path, f"{named(part)} is no content of {losses.kept.label}")
    return None


def _write_media(part: Media, path: str, losses: Losses) -> Json | None:
    noted = losses.notes(part.extra, f"{path}.extra")
    kind = noted.pop("type", None) or shapes.media_type(part)
    url = part.url if part.data is None else data_url(part.mime_type, part.data)
    if part.data is not None and from_data_url(url or "") is None:
        losses.refuse(f"{path}.mime_type", "can't stand in a data URL")
    if kind == "input_image":
        made = {"type": kind, "image_url": url}
        if part.name is not None:
            losses.refuse(f"{path}.name", "an input_image has no name")
    elif kind == "input_file":
        made = {"type": kind, "file_url" if part.data is None else "file_data": url}
        if part.name is not None:
            made["filename"] = part.name
    else:
        losses.refuse(f"{losses.path(path)}.type", f"{kind!r} is no type of media")
        return None
    return losses.merge(made, noted, losses.path(path))
