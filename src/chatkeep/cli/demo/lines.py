"""One line per part of a message, cut to the width: enough to recognise it. `chatkeep show` prints it all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text as Styled

from chatkeep.cli.text import one_line
from chatkeep.cli.transcript import ROLE_COLOURS, media
from chatkeep.message import Media, Message, Part, Text, ToolCall, ToolResult

INDENT = "    "
LABEL = 11
"""Columns for the role or name before each line."""


def message_lines(messages: list[Message], tools: Mapping[str, str], width: int) -> Iterator[Styled]:
    """The lines of some messages; `tools` are the names of the tools by call id."""
    for message in messages:
        label = Styled(one_line(message.name or message.role), f"bold {ROLE_COLOURS.get(message.role, 'blue')}")
        label.truncate(LABEL - 1, overflow="ellipsis", pad=True)
        for part in message.parts:
            line = Styled(INDENT).append_text(label).append(" ").append_text(_shown(part, tools))
            line.truncate(width, overflow="ellipsis")
            yield line
            label = Styled(" " * (LABEL - 1))


def _shown(part: Part, tools: Mapping[str, str]) -> Styled:
    if isinstance(part, Text):
        return Styled(one_line(part.text))
    if isinstance(part, Media):
        return Styled(media(part), "blue")
    if isinstance(part, ToolCall):
        return _arrow("→", part.name).append(f" {one_line(part.arguments)}")
    if isinstance(part, ToolResult):
        return _arrow("←", tools.get(part.call_id) or part.name or part.call_id).append(
            f" {one_line(part.text)}", "dim"
        )
    return Styled(f"[{type(part).__name__}]", "blue")


def _arrow(arrow: str, name: str) -> Styled:
    return Styled().append(f"{arrow} ", "yellow").append(one_line(name), "bold")
