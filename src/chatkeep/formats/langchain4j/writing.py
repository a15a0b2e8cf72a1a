"""Message -> LangChain4j's messages. What the format can't say is refused with its path, or left out when asked."""

from __future__ import annotations

from chatkeep import values
from chatkeep.formats.langchain4j import reading, shapes
from chatkeep.formats.shared.encodings import to_base64
from chatkeep.formats.shared.losses import Losses
from chatkeep.formats.shared.objects import Json, put
from chatkeep.formats.shared.parts import Placed, check_readable, is_result, named, placed, runs, write_opaque, written
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

_ORDER = (Thinking, Text, ToolCall)
"""The parts of an AI message, in the order that reading gives them."""


def write_message(message: Message, path: str, losses: Losses) -> list[Json]:
    """The dicts of one message: one for each result, one for what stands between them."""
    kind = shapes.TYPES.get(message.role)
    if kind is None:
        losses.refuse(f"{path}role", f"LangChain4j knows no role {message.role!r}; it has {', '.join(shapes.TYPES)}")
        return []
    noted = losses.notes(message.extra, f"{path}extra")
    parted = runs(placed(message.parts, f"{path}parts"))
    if noted and len(parted) > 1:
        losses.refuse(losses.path(path), f"belongs to one LangChain4j message, and the parts make {len(parted)}")
        noted = {}
    if message.name is not None and kind != "USER":
        losses.refuse(f"{path}name", "only a UserMessage has a name")
    made: list[Json] = []
    item: Json | None
    for run in parted:
        if is_result(run):
            item = _write_result(*run[0], noted, losses)
            attributes = True
        else:
            item = _write_run(kind, message, run, noted, path, losses)
            attributes = kind != "SYSTEM"
        if item is None:
            continue
        if not attributes and message.metadata:
            losses.refuse(f"{path}metadata", "a SystemMessage has no attributes")
        # What belongs to a message that becomes several goes with the first.
        metadata = {} if made else values.copied_object(message.metadata, "metadata")
        if attributes and (metadata or item["type"] != "USER"):
            put(item, noted, "attributes", metadata, {})
        made.append(losses.merge(item, noted, losses.path(path)))
    check_readable(message, made, path, losses, _read_all)
    return made


def _read_all(made: list[Json]) -> None:
    for item in made:
        reading.read_message(item, "message", {})


def _write_run(kind: str, message: Message, run: list[Placed], noted: Json, path: str, losses: Losses) -> Json | None:
    if kind == "TOOL_EXECUTION_RESULT":
        losses.refuse(f"{path}parts", "a message of role 'tool' is tool results and nothing else")
        return None
    if kind == "CUSTOM":
        for where, part in run:
            losses.refuse(where, f"{named(part)}: a CustomMessage is nothing but attributes")
        return {"type": kind}
    if kind == "SYSTEM":
        return _write_system(run, path, losses)
    if kind == "AI":
        return _write_ai(run, noted, losses)
    contents = written(run, write_content, losses)
    if run and not contents:
        return None
    made: Json = {"type": kind, "contents": contents}
    if message.name is not None:
        made["name"] = message.name
    return made


def _write_system(run: list[Placed], path: str, losses: Losses) -> Json | None:
    texts = []
    for where, part in run:
        if isinstance(part, Text):
            losses.refuse_extra(part.extra, where)
            texts.append(part.text)
        else:
            losses.refuse(where, f"{named(part)} is nothing that a SystemMessage has")
    if len(texts) != 1:
        losses.refuse(f"{path}parts", f"a SystemMessage is one text, not {len(texts)}")
    return {"type": "SYSTEM", "text": "".join(texts)} if texts else None


def _write_ai(run: list[Placed], noted: Json, losses: Losses) -> Json | None:
    made: Json = {"type": "AI"}
    calls: list[Json] = []
    last = 0
    for path, part in run:
        if not isinstance(part, _ORDER):
            losses.refuse(path, f"{named(part)} is nothing that an AiMessage has")
            continue
        place = _ORDER.index(type(part))
        if place < last:
            losses.refuse(path, "an AiMessage has one order: thinking, text, tool calls")
        last = max(last, place)
        if isinstance(part, ToolCall):
            calls.append(_write_call(part, path, losses))
            continue
        losses.refuse_extra(part.extra, path)
        if isinstance(part, Thinking) and part.signature is not None:
            losses.refuse(f"{path}.signature", f"{losses.kept.label} has no signatures")
        field = "text" if isinstance(part, Text) else "thinking"
        if field in made:
            losses.refuse(path, f"an AiMessage has one {field}")
        made[field] = made.get(field, "") + part.text
    put(made, noted, "toolExecutionRequests", calls, [])
    return None if run and made.keys() == {"type", "toolExecutionRequests"} and not calls else made


def _write_call(part: ToolCall, path: str, losses: Losses) -> Json:
    noted = losses.notes(part.extra, f"{path}.extra")
    made: Json = {"name": part.name}
    put(made, noted, "id", part.id, "")
    put(made, noted, "arguments", part.arguments, "")
    return losses.merge(made, noted, losses.path(path))


def _write_result(path: str, part: Part, noted: Json, losses: Losses) -> Json:
    assert isinstance(part, ToolResult)
    losses.refuse_extra(part.extra, path)
    made: Json = {"type": "TOOL_EXECUTION_RESULT"}
    put(made, noted, "id", part.call_id, "")
    put(made, noted, "isError", part.is_error, False)
    if part.name is not None:
        made["toolName"] = part.name
    if isinstance(part.content, str):
        if noted.get("contents") == shapes.FORM_TEXT:
            del noted["contents"]
            made["text"] = part.content
        else:
            made["contents"] = [{"text": part.content, "type": "TEXT"}]
    else:
        made["contents"] = written(placed(part.content, f"{path}.content"), write_content, losses)
    return made


def write_content(part: Part, path: str, losses: Losses) -> Json | None:
    """One content, None where it was left out."""
    if isinstance(part, Opaque) and part.type == shapes.OPAQUE_CONTENT:
        return write_opaque(part, path, losses, reading.read_content)
    if isinstance(part, Media):
        return _write_media(part, path, losses)
    if isinstance(part, Text):
        noted = losses.notes(part.extra, f"{path}.extra")
        return losses.merge({"text": part.text, "type": "TEXT"}, noted, losses.path(path))
    losses.refuse(path, f"{named(part)} is no content of {losses.kept.label}")
    return None


def _write_media(part: Media, path: str, losses: Losses) -> Json | None:
    noted = losses.notes(part.extra, f"{path}.extra")
    form = noted.pop("type", None)
    kind = form if form in shapes.MEDIA_FIELDS else shapes.content_type(part.mime_type)
    if kind is None:
        losses.refuse(path, f"{losses.kept.label} has no place for {part.mime_type}")
        return None
    if form not in (None, kind, shapes.UNTYPED, shapes.BINARY):
        losses.refuse(f"{losses.path(path)}.type", f"{form!r} is no type of content")
    if part.name is not None:
        losses.refuse(f"{path}.name", "contents have no name")
    inner: Json = {} if form == shapes.UNTYPED else {"mimeType": part.mime_type}
    if part.data is None:
        inner["url"] = part.url
    else:
        inner["binaryData" if form == shapes.BINARY and kind == "AUDIO" else "base64Data"] = to_base64(part.data)
    made: Json = {shapes.MEDIA_FIELDS[kind]: inner, "type": kind}
    if kind == "IMAGE" and "detailLevel" not in noted:
        made["detailLevel"] = shapes.DETAIL
    return losses.merge(made, noted, losses.path(path))
