"""Message -> OpenAI message dicts. What the format can't say is refused with its path, or left out when asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chatkeep.formats.openai import reading, shapes
from chatkeep.formats.openai.part_writing import write_content_part, write_function_call, write_tool_call
from chatkeep.formats.shared.losses import Losses
from chatkeep.formats.shared.objects import MISSING, Json
from chatkeep.formats.shared.parts import Placed, check_readable, is_result, placed, runs, written
from chatkeep.message import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult


@dataclass(frozen=True)
class ChatLosses(Losses):
    """With what some servers speak and others refuse."""

    reasoning: bool = True
    """Write thinking as `reasoning_content`."""


PLACES = ("reasoning_content", "content", "refusal", "tool_calls", "function_call")
"""The fields of an OpenAI message that hold parts, in the order that reading gives them."""


def write_message(message: Message, path: str, losses: ChatLosses) -> list[Json]:
    """The dicts of one message: one per tool result, one per run of other parts between them."""
    noted = losses.notes(message.extra, f"{path}extra")
    parted = runs(placed(message.parts, f"{path}parts"))
    others = sum(not is_result(run) for run in parted)
    if noted and others != 1:
        losses.refuse(losses.path(path), f"belongs to one OpenAI message, and the parts make {others}")
        noted = {}
    if others == 0 and message.name is not None:
        losses.refuse(f"{path}name", "only the tool of a result has a name there")
    made: list[Json] = []
    for run in parted:
        if is_result(run):
            made.append(_write_result(*run[0], message.role, losses))
        elif message.role in shapes.RESULT_ROLES:
            losses.refuse(f"{path}parts", f"a message of role {message.role!r} is tool results and nothing else")
        else:
            made += _write_run(message, run, noted, path, losses)
    check_readable(message, made, path, losses, _read_all)
    return made


def _read_all(made: list[Json]) -> None:
    for item in made:
        reading.read_message(item, "message", {})


def _write_run(message: Message, run: list[Placed], noted: Json, path: str, losses: ChatLosses) -> list[Json]:
    """One dict, or none where everything in it was left out."""
    groups = _grouped(run, losses)
    made: Json = {"role": message.role}
    if message.name is not None:
        made["name"] = message.name
    if groups["reasoning_content"] and losses.reasoning:
        made["reasoning_content"] = _write_thinking(groups["reasoning_content"], losses)
    form = noted.get("content")
    content = written(groups["content"], write_content_part, losses)
    if content or form != MISSING:
        made["content"] = _content_form(content, form, f"{losses.path(path)}.content", losses)
    if groups["refusal"]:
        made["refusal"] = _only(groups["refusal"], losses)[1].text  # type: ignore[union-attr]
    if calls := written(groups["tool_calls"], write_tool_call, losses):
        made["tool_calls"] = calls
    if groups["function_call"]:
        made["function_call"] = write_function_call(*_only(groups["function_call"], losses), losses)
    if run and made.get("content") is None and made.keys() <= {"role", "name", "content"}:
        return []
    rest = {key: value for key, value in noted.items() if key != "content"}
    return [losses.merge(made, rest, losses.path(path))]


def _grouped(run: list[Placed], losses: Losses) -> dict[str, list[Placed]]:
    groups: dict[str, list[Placed]] = {place: [] for place in PLACES}
    last = 0
    for path, part in run:
        place = _place(part)
        if PLACES.index(place) < last:
            losses.refuse(path, f"a part of {place} behind one of {PLACES[last]}; OpenAI has one order: {_ORDER}")
        last = max(last, PLACES.index(place))
        groups[place].append((path, part))
    return groups


_ORDER = ", ".join(PLACES)


def _place(part: Part) -> str:
    if isinstance(part, Thinking):
        return "reasoning_content"
    if isinstance(part, ToolCall):
        return "function_call" if _noted_type(part) == shapes.FUNCTION_CALL_FIELD else "tool_calls"
    if isinstance(part, Opaque):
        return "tool_calls" if part.type == shapes.OPAQUE_TOOL_CALL else "content"
    if isinstance(part, Text) and _noted_type(part) == shapes.REFUSAL_FIELD:
        return "refusal"
    return "content"


def _noted_type(part: Text | ToolCall) -> Any:
    return shapes.NOTES.peek(part.extra, "type")


def _only(group: list[Placed], losses: Losses) -> Placed:
    for path, part in group[1:]:
        losses.refuse(path, f"OpenAI has room for one part of {_place(part)}")
    return group[0]


def _content_form(content: list[Json], form: Any, path: str, losses: Losses) -> Any:
    """The form that reading takes for granted (null, one text as a str, else a list), or the noted one."""
    plain = len(content) == 1 and content[0].keys() == {"type", "text"}
    if form == shapes.FORM_LIST and (plain or not content):
        return content
    if form is not None:
        losses.refuse(path, f"{form!r} doesn't fit the content that the message has")
    if not content:
        return None
    return content[0]["text"] if plain else content


def _write_thinking(group: list[Placed], losses: Losses) -> str:
    path, part = _only(group, losses)
    assert isinstance(part, Thinking)
    losses.refuse_extra(part.extra, path)
    if part.signature is not None:
        losses.refuse(f"{path}.signature", "OpenAI's format has no signatures")
    return part.text


def _write_result(path: str, part: Part, role: str, losses: Losses) -> Json:
    assert isinstance(part, ToolResult)
    noted = losses.notes(part.extra, f"{path}.extra")
    made: Json
    if role == "function" and part.name == part.call_id:
        made = {"role": "function", "name": part.name}
    else:
        if role == "function":
            losses.refuse(f"{path}.call_id", 'an answer of role "function" is found by its name; give it as call_id')
        made = {"role": "tool", "tool_call_id": part.call_id}
        if part.name is not None:
            made["name"] = part.name
    if part.is_error:
        losses.refuse(f"{path}.is_error", "OpenAI's format has no mark for failed calls; say it in the content")
    form = noted.pop("content", None)
    if form in (MISSING, shapes.FORM_NULL) and part.content == "":
        if form == shapes.FORM_NULL:
            made["content"] = None
    else:
        if form is not None:
            losses.refuse(f"{losses.path(path)}.content", f"{form!r} doesn't fit the content of the result")
        made["content"] = part.content
        if not isinstance(part.content, str):
            made["content"] = written(placed(part.content, f"{path}.content"), write_content_part, losses)
    return losses.merge(made, noted, losses.path(path))
