"""Renders the messages of one conversation for reading. Gets messages, prints lines; reads no repository."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text as Styled

from chatkeep.cli import output
from chatkeep.cli.text import count, local, one_line, safe, size
from chatkeep.conversation import Conversation, HistoryEntry
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from chatkeep.storage.codec import UNREADABLE
from chatkeep.storage.jsontext import dump_json

ROLE_COLOURS = {"system": "magenta", "developer": "magenta", "user": "cyan", "assistant": "green", "tool": "yellow"}
LONG_ARGUMENTS = 72
"""Arguments beyond so many characters are laid out over several lines."""


class Transcript:
    """Prints a conversation message by message, and remembers which tool calls still wait for a result."""

    def __init__(self, console: Console, *, wrap: bool) -> None:
        self._console = console
        self._wrap = wrap
        self._waiting: dict[str, list[str]] = {}
        """Names of the calls without a result, by call id, the earliest first."""
        self._seen = 0

    def begin(self, conversation: Conversation) -> None:
        """The head: id, title, numbers, metadata."""
        head = Styled(one_line(conversation.id), "bold")
        if conversation.title:
            head.append(f"  {one_line(conversation.title)}")
        self._print(head)
        numbers = f"{count(conversation.message_count, 'message')}, last change {local(conversation.updated_at)}"
        self._print(Styled(numbers + (f", owner {one_line(conversation.owner)}" if conversation.owner else ""), "dim"))
        if conversation.metadata:
            self._print(Styled(f"metadata {one_line(dump_json(conversation.metadata))}", "dim"))

    def add(self, entry: HistoryEntry) -> None:
        """One message."""
        message = entry.message
        self._seen += 1
        head = Styled(one_line(message.role), f"bold {ROLE_COLOURS.get(message.role, 'blue')}")
        if message.name:
            head.append(f" ({one_line(message.name)})")
        head.append(f"  {local(message.created_at)}", "dim not bold")
        if entry.expires_at is not None:
            head.append(f"  expires {_expiry(entry.expires_at)}", "dim not bold")
        self._print(Styled())
        self._print(head)
        for part in message.parts:
            self._part(part, entry.position)
        if not message.parts:
            self._print(Styled("(no content)", "dim"), 2)
        self._rest(message)

    def end(self) -> None:
        """What a reader should know at the end: emptiness, and calls without a result."""
        if not self._seen:
            self._print(Styled("(no messages)", "dim"))
        open_calls = [f"{name} ({call_id})" for call_id, names in self._waiting.items() for name in names]
        if open_calls:
            self._print(Styled())
            shown = ", ".join(one_line(call) for call in open_calls[:5]) + (", …" if len(open_calls) > 5 else "")
            self._print(Styled(f"{count(len(open_calls), 'tool call')} without a result: {shown}", "dim"))

    def _part(self, part: Part, position: int) -> None:
        if isinstance(part, Text):
            self._print(Styled(safe(part.text)) if part.text else Styled("(empty text)", "dim"), 2)
        elif isinstance(part, Thinking):
            self._print(Styled(f"thinking: {safe(part.text)}", "dim italic"), 2)
        elif isinstance(part, Media):
            self._print(Styled(media(part), "blue"), 2)
        elif isinstance(part, ToolCall):
            self._call(part)
        elif isinstance(part, ToolResult):
            self._result(part, position)
        else:
            self._opaque(part, position)

    def _call(self, call: ToolCall) -> None:
        self._waiting.setdefault(call.id, []).append(call.name)
        line = Styled("→ ", "yellow").append(one_line(call.name), "bold yellow")
        arguments = _arguments(call.arguments)
        if "\n" in arguments:
            self._print(line.append(f"  {one_line(call.id)}", "dim not bold"), 2)
            self._print(Styled(arguments), 4)
        else:
            self._print(line.append(f" {arguments}", "not bold").append(f"  {one_line(call.id)}", "dim not bold"), 2)

    def _result(self, result: ToolResult, position: int) -> None:
        names = self._waiting.get(result.call_id)
        called = names.pop(0) if names else None
        if names == []:
            del self._waiting[result.call_id]
        line = Styled("← ", "yellow").append(one_line(called or result.name or "result"), "bold yellow")
        line.append(f"  {one_line(result.call_id)}", "dim not bold")
        if called is None:
            line.append("  (its call is not shown here)", "dim not bold")
        if result.is_error:
            line.append("  error", "bold red")
        self._print(line, 2)
        if isinstance(result.content, str):
            self._print(Styled(safe(result.content)) if result.content else Styled("(empty)", "dim"), 4)
            return
        for part in result.content:
            if isinstance(part, Text):
                self._print(Styled(safe(part.text)), 4)
            elif isinstance(part, Media):
                self._print(Styled(media(part), "blue"), 4)
            else:
                self._part(part, position)

    def _opaque(self, part: Opaque, position: int) -> None:
        if part.type == UNREADABLE and isinstance(part.data, dict):
            reason = one_line(str(part.data.get("reason", "")))
            self._print(Styled(f"unreadable row at position {position}: {reason}", "red"), 2)
            row = part.data.get("row")
            for key, value in row.items() if isinstance(row, dict) else ():
                self._print(Styled(f"{one_line(str(key))}: {one_line(str(value))}", "dim"), 4)
            return
        data = dump_json(part.data)
        shown = one_line(data) if len(data) <= LONG_ARGUMENTS else size(len(data.encode()))
        self._print(Styled(f"[{one_line(part.type)}, {shown}]", "blue"), 2)

    def _rest(self, message: Message) -> None:
        # `extra` is for the way back to a provider's format, not for people; --json has it.
        if message.metadata:
            self._print(Styled(f"metadata {one_line(dump_json(message.metadata))}", "dim"), 2)

    def _print(self, text: Styled, indent: int = 0) -> None:
        if self._wrap:
            text.overflow = "fold"
            self._console.print(Padding(text, (0, 0, 0, indent)) if indent else text)
            return
        # In a pipe a line stays a line, however long.
        prefix = " " * indent
        shown = "\n".join(f"{prefix}{line}".rstrip() for line in text.plain.split("\n"))
        output.line(shown)


def media(part: Media) -> str:
    """`[image/png, chart.png, 12 KB]`."""
    facts = [part.mime_type, part.name or "", part.url if part.data is None else size(len(part.data))]
    return f"[{', '.join(one_line(str(fact)) for fact in facts if fact)}]"


def _arguments(text: str) -> str:
    """The JSON text as it is, or laid out where it is long and can be."""
    shown = one_line(text)
    if len(shown) <= LONG_ARGUMENTS:
        return shown
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return safe(text)
    return safe(json.dumps(data, ensure_ascii=False, indent=2))


def _expiry(moment: dt.datetime) -> str:
    left = moment - dt.datetime.now(dt.UTC)
    return f"in {max(0, int(left.total_seconds()))} s" if left < dt.timedelta(minutes=2) else local(moment)
