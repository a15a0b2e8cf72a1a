"""Memory as text that can neither forge a line of the prompt nor close a part of it; templates that parse no value.

Each message becomes one JSON object on one line. JSON already escapes quotes, backslashes, line ends and controls.
Beyond it, everything is escaped that a reader of the prompt may take for structure, or can't see:
the characters of tags, entities and fences and what normalises to them, line and paragraph separators, and the
invisible: format characters (zero width, bidirectional, tags), fillers, private use, unassigned, surrogates.
"""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from chatkeep.message import Media, Message, Opaque, ToolResult

STRUCTURE = frozenset("<>&`")
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
FILLERS = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x2800, 0x3164, 0xFFA0})
"""Letters and marks that show nothing."""
SELECTORS = (range(0xFE00, 0xFE0E), range(0xE0100, 0xE01F0))
"""Variation selectors, which can carry hidden text; FE0E and FE0F only choose between two looks of an emoji."""


class _Escapes(dict[int, str | int]):
    """What stands for a character, found out when it is first met."""

    def __missing__(self, code: int) -> str | int:
        self[code] = found = code if _is_plain(code) else _escaped(code)
        return found


_ESCAPES = _Escapes()


def render(messages: Iterable[Message]) -> str:
    """The messages as lines of JSON, oldest first; `""` for none."""
    return "\n".join(_line(message) for message in messages)


class Template:
    """A text with the places `{instructions}` and `{memory}`, each once; `{{` and `}}` are braces.

    It is taken apart when it is made, and values are put between its pieces: no value is ever parsed.
    Raises TypeError for what is no str, ValueError for any other place, a missing one, or a lone brace.
    """

    PLACES = ("instructions", "memory")

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"template: expected str, got {type(text).__name__}")
        try:
            pieces = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError(f"template: {error}; a brace that is meant as one is written twice") from error
        places = [place for _, place, _, _ in pieces if place is not None]
        known = " and ".join(f"{{{name}}}" for name in self.PLACES)
        for _, place, spec, conversion in pieces:
            if place is not None and (place not in self.PLACES or spec or conversion):
                shown = place + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
                raise ValueError(f"template: {{{shown}}} is no place of it; there are {known}")
        if sorted(places) != sorted(self.PLACES):
            raise ValueError(f"template: {known} must each stand in it once")
        self._pieces = [(literal, place) for literal, place, _, _ in pieces]

    def render(self, instructions: str, memory: str) -> str:
        """The text with both values in their places, without white space at its ends."""
        values: Mapping[str | None, str] = {"instructions": instructions, "memory": memory, None: ""}
        return "".join(literal + values[place] for literal, place in self._pieces).strip()


def _line(message: Message) -> str:
    said: dict[str, Any] = {"role": message.role}
    if message.name is not None:
        said["name"] = message.name
    if message.text:
        said["text"] = message.text
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    if calls:
        said["tool_calls"] = calls
    results = [_result(result) for result in message.tool_results]
    if results:
        said["tool_results"] = results
    attached = [_attached(part) for part in message.parts if isinstance(part, (Media, Opaque))]
    if attached:
        said["attached"] = attached
    return json.dumps(said, ensure_ascii=False).translate(_ESCAPES)


def _result(result: ToolResult) -> dict[str, Any]:
    said: dict[str, Any] = {} if result.name is None else {"name": result.name}
    said["text"] = result.text
    if result.is_error:
        said["is_error"] = True
    return said


def _attached(part: Media | Opaque) -> str:
    if isinstance(part, Opaque):
        return part.type
    return part.mime_type if part.name is None else f"{part.name} ({part.mime_type})"


def _is_plain(code: int) -> bool:
    if code < 0x7F:
        return code >= 0x20 and chr(code) not in STRUCTURE
    if code in FILLERS or any(code in selectors for selectors in SELECTORS):
        return False
    char = chr(code)
    return unicodedata.category(char) not in UNSEEN and not STRUCTURE & set(unicodedata.normalize("NFKC", char))


def _escaped(code: int) -> str:
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"
