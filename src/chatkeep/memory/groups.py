"""Calls and results brought together: a log becomes the groups that a prompt shows whole or not at all. Pure.

Every provider wants each tool call answered directly behind it, and no result without its call. A log holds what
happened: results that arrive late, twice or never, and messages that a crash cut off.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import msgspec

from chatkeep.message import ASSISTANT, TOOL, USER, Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from chatkeep.storage.backend import SYSTEM_ROLES
from chatkeep.storage.codec import UNREADABLE

SUMMARY_ROLE = "chatkeep.summary"
"""The role of the row in which SummarizingChatMemory keeps a summary. No window shows it as a message."""


PASSED_OVER = (*SYSTEM_ROLES, SUMMARY_ROLE)


class Group(msgspec.Struct, gc=False):
    """One message, or an assistant message with calls together with all their results behind it."""

    messages: list[Message]
    """As they are shown. A message of which only some parts are shown is a copy that holds those."""
    starts_turn: bool = False
    """A user message that says something, perhaps beside results."""
    leads: bool = False
    """A view may start here: a user message without results."""
    joined: bool = False
    """A user message with text and results that are shown in it, so that the group before must be shown too."""
    open: bool = False
    """Calls that are still being answered."""


class _Call:
    __slots__ = ("answer", "owner")

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.answer: tuple[int, int] | None = None
        """Message and part of the result that counts."""


def is_system(message: Message) -> bool:
    """Role `developer` counts as system."""
    return message.role in SYSTEM_ROLES


def has_content(parts: Iterable[Part]) -> bool:
    """Whether a provider takes a message of these parts.

    Thinking alone is nothing to them, nor is text of white space: Anthropic refuses both ("text content blocks must
    contain non-whitespace text"), and what could not be read is for people, not for models.
    """
    for part in parts:
        if type(part) is Text:
            if part.text and not part.text.isspace():
                return True
        elif isinstance(part, (Media, ToolCall, ToolResult)) or (isinstance(part, Opaque) and part.type != UNREADABLE):
            return True
    return False


def groups_of(messages: Sequence[Message]) -> list[Group]:
    """The groups of a log (oldest first), in its order. System messages and summaries are passed over.

    A result answers the nearest earlier unanswered call with its id, and the last of two results counts. Left out:
    results without a call, messages without content, and a group that lacks a result unless it is still being
    answered, that is, unless nothing but system messages and results follows it.
    """
    plain = [_is_plain(message) for message in messages]
    calls, last_said = _paired(messages, plain)
    results: dict[int, list[tuple[int, int]]] = {}
    own_results: dict[int, set[int]] = {}
    lacking: set[int] = set()
    for call in calls:
        if call.answer is None:
            lacking.add(call.owner)
        elif call.answer[0] != call.owner:
            results.setdefault(call.owner, []).append(call.answer)
        else:  # as providers' built-in tools do
            own_results.setdefault(call.owner, set()).add(call.answer[1])
    abandoned = lacking - {last_said}
    owners = {call.owner for call in calls}
    groups: list[Group] = []
    # The index of a message whose results end the last group, so that it may be joined to it.
    ending = -1
    for index, message in enumerate(messages):
        if plain[index]:
            if has_content(message.parts):
                leads = message.role == USER
                groups.append(Group([message], leads, leads))
                ending = -1
            continue
        if not _says_something(message) or index in abandoned:
            continue
        shown = _without(message, keep_results=own_results.get(index, ()))
        if index in owners:
            answers = sorted(results.get(index, ()))
            groups.append(Group([shown, *_result_messages(messages, answers)], open=index in lacking))
            ending = answers[-1][0] if answers else -1
        elif message.role == USER:
            group = Group([shown], starts_turn=True, leads=not message.tool_results)
            if ending == index and _results_lead(message):
                # They directly follow their call: it stays one message, as the provider gave it.
                group.messages = [_joined(groups[-1].messages.pop(), message)]
                group.joined = True
            groups.append(group)
            ending = -1
        else:
            groups.append(Group([shown]))
            ending = -1
    return groups


def _paired(messages: Sequence[Message], plain: Sequence[bool]) -> tuple[list[_Call], int]:
    """All calls with the results that count, and the index of the last message that is neither system nor results."""
    calls: list[_Call] = []
    by_id: dict[str, list[_Call]] = {}
    last_said = -1
    for index, message in enumerate(messages):
        if plain[index]:
            last_said = index
            continue
        if message.role in PASSED_OVER:
            continue
        if not holds_only_results(message):
            last_said = index
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and message.role not in (USER, TOOL):
                call = _Call(index)
                calls.append(call)
                by_id.setdefault(part.id, []).append(call)
            elif isinstance(part, ToolResult) and (asked := by_id.get(part.call_id)):
                unanswered = (call for call in reversed(asked) if call.answer is None)
                next(unanswered, asked[-1]).answer = (index, place)
    return calls, last_said


def _is_plain(message: Message) -> bool:
    """Most messages: something said, with neither calls nor results."""
    role = message.role
    if role != USER and role != ASSISTANT and (role == TOOL or role in PASSED_OVER):
        return False
    for part in message.parts:
        kind = type(part)
        if kind is ToolCall or kind is ToolResult:
            return False
    return True


def holds_only_results(message: Message) -> bool:
    """A tool message, whatever its role; also a `tool` message that names no call."""
    if message.role == TOOL:
        return True
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    return bool(results) and not has_content(part for part in message.parts if not isinstance(part, ToolResult))


def _says_something(message: Message) -> bool:
    if message.role in PASSED_OVER or holds_only_results(message):
        return False
    dropped: tuple[type, ...] = (ToolResult, ToolCall) if message.role == USER else (ToolResult,)
    return has_content(part for part in message.parts if not isinstance(part, dropped))


def _without(message: Message, keep_results: Container[int]) -> Message:
    """The message without results that are shown elsewhere or nowhere, and without calls that a user can't make."""

    def stays(place: int, part: Part) -> bool:
        if isinstance(part, ToolResult):
            return place in keep_results
        return not (isinstance(part, ToolCall) and message.role == USER)

    return with_parts(message, [part for place, part in enumerate(message.parts) if stays(place, part)])


def _result_messages(messages: Sequence[Message], answers: Sequence[tuple[int, int]]) -> list[Message]:
    """The messages that hold these results and nothing else, in the order of their arrival."""
    by_message: dict[int, list[int]] = {}
    for index, place in answers:
        by_message.setdefault(index, []).append(place)
    return [
        with_parts(messages[index], [messages[index].parts[place] for place in places])
        for index, places in by_message.items()
    ]


def _joined(results: Message, message: Message) -> Message:
    """A user message with the results that count and what it says beside them, in its own order."""
    counting = {id(part) for part in results.parts}
    kept = [part for part in message.parts if id(part) in counting or not isinstance(part, (ToolResult, ToolCall))]
    return with_parts(message, kept)


def _results_lead(message: Message) -> bool:
    """Whether its results come first, as Anthropic wants it."""
    count = len(message.tool_results)
    return all(isinstance(part, ToolResult) for part in message.parts[:count])


def with_parts(message: Message, parts: Sequence[Part]) -> Message:
    """The message itself where these are all its parts, else a copy that holds only them."""
    return message if len(parts) == len(message.parts) else msgspec.structs.replace(message, parts=tuple(parts))
