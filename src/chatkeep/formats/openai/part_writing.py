"""Parts -> elements of OpenAI's `content` and `tool_calls`."""

from __future__ import annotations

from chatkeep.formats.openai import reading, shapes
from chatkeep.formats.shared.encodings import data_url, from_data_url, to_base64
from chatkeep.formats.shared.losses import Losses
from chatkeep.formats.shared.objects import MISSING, Json
from chatkeep.formats.shared.parts import named, write_opaque
from chatkeep.message import Media, Opaque, Part, Text, ToolCall


def write_content_part(part: Part, path: str, losses: Losses) -> Json | None:
    """One element of a content list, None where it was left out."""
    if isinstance(part, Text):
        return _write_text(part, path, losses)
    if isinstance(part, Media):
        return _write_media(part, path, losses)
    if isinstance(part, Opaque) and part.type == shapes.OPAQUE_CONTENT:
        return write_opaque(part, path, losses, reading.read_content_part)
    losses.refuse(path, f"{named(part)} is no content of OpenAI's format")
    return None


def write_tool_call(part: Part, path: str, losses: Losses) -> Json | None:
    """One element of `tool_calls`, None where it was left out."""
    if isinstance(part, Opaque):
        return write_opaque(part, path, losses, reading.read_tool_call)
    assert isinstance(part, ToolCall)
    noted = losses.notes(part.extra, f"{path}.extra")
    kind = noted.pop("type", "function")
    made: Json = {"id": part.id}
    if kind == "custom":
        made |= {"type": "custom", "custom": {"name": part.name, "input": part.arguments}}
    else:
        if kind != MISSING:
            made["type"] = "function"
            if kind != "function":
                losses.refuse(f"{losses.path(path)}.type", f"{kind!r} is no type of call")
        made["function"] = {"name": part.name, "arguments": part.arguments}
    return losses.merge(made, noted, losses.path(path))


def write_function_call(path: str, part: Part, losses: Losses) -> Json:
    """The value of the older `function_call`."""
    assert isinstance(part, ToolCall)
    if part.id != part.name:
        losses.refuse(f"{path}.id", "a function_call has no id; here its name stands for it")
    noted = losses.notes(part.extra, f"{path}.extra")
    del noted["type"]
    inner = noted.pop("function_call", {})
    where = losses.path(path)
    if type(inner) is not dict:
        losses.refuse(f"{where}.function_call", f"expected dict, got {type(inner).__name__}")
        inner = {}
    for key in sorted(noted):
        losses.refuse(f"{where}.{key}", "not a field of a function_call")
    return losses.merge({"name": part.name, "arguments": part.arguments}, inner, f"{where}.function_call")


def _write_text(part: Text, path: str, losses: Losses) -> Json:
    noted = losses.notes(part.extra, f"{path}.extra")
    kind = noted.pop("type", "text")
    if kind not in ("text", "refusal"):
        losses.refuse(f"{losses.path(path)}.type", f"{kind!r} is no type of text")
        kind = "text"
    return losses.merge({"type": kind, kind: part.text}, noted, losses.path(path))


def _write_media(part: Media, path: str, losses: Losses) -> Json | None:
    noted = losses.notes(part.extra, f"{path}.extra")
    kind = noted.pop("type", shapes.media_part_type(part))
    made: Json | None = None
    if kind == "image_url":
        made = {"url": part.url if part.data is None else _data_url(part.mime_type, part.data, path, losses)}
    elif kind == "input_audio" and part.data is not None:
        audio_format = shapes.audio_format(part.mime_type)
        if audio_format is not None:
            made = {"data": to_base64(part.data), "format": audio_format}
    elif kind == "file" and part.data is not None:
        made = {"file_data": _data_url(part.mime_type, part.data, path, losses)}
        if part.name is not None:
            made["filename"] = part.name
    if made is None:
        held = "a link to" if part.data is None else "data of"
        losses.refuse(path, f"OpenAI's format has no place for {held} {part.mime_type}")
        return None
    if part.name is not None and kind != "file":
        losses.refuse(f"{path}.name", f"an {kind} has no name")
    return losses.merge({"type": kind, kind: made}, noted, losses.path(path))


def _data_url(mime_type: str, data: bytes, path: str, losses: Losses) -> str:
    url = data_url(mime_type, data)
    if from_data_url(url) is None:
        losses.refuse(f"{path}.mime_type", "can't stand in a data URL")
    return url
