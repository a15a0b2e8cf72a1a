"""What a summary covers, when one is due, and how it is shown: pure rules over what was read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chatkeep.memory.groups import SUMMARY_ROLE, Group, groups_of
from chatkeep.message import Message, Text
from chatkeep.storage.context import Context

COVERS_POSITION = "covers_position"
COVERS_MESSAGE = "covers_message"
"""Metadata of a summary's row: position and id of the last message it covers. The id holds where a conversation was
imported or saved anew and has other positions."""


class Uncovered(msgspec.Struct):
    """The part of the context that no summary covers, oldest first, and the newest summary."""

    messages: list[Message]
    positions: list[int]
    summary: Message | None


def summary_row(text: str, position: int, message_id: str) -> Message:
    """A summary as it is stored."""
    return Message(SUMMARY_ROLE, (Text(text),), metadata={COVERS_POSITION: position, COVERS_MESSAGE: message_id})


def uncovered(context: Context, look_back: int) -> Uncovered | None:
    """None where older messages are needed: up to where the newest summary's cover ends, or `look_back` messages."""
    summary = next((message for message in reversed(context.messages) if _is_summary(message)), None)
    enough = context.whole or len(context.records) >= look_back
    start = 0
    if summary is not None:
        position, message_id = summary.metadata[COVERS_POSITION], summary.metadata[COVERS_MESSAGE]
        covered = [
            index
            for index, record in enumerate(context.records)
            if record.message_id == message_id or record.position <= position
        ]
        if not covered and not enough:
            return None
        start = covered[-1] + 1 if covered else 0
    elif not enough:
        return None
    said = [
        (message, record.position)
        for message, record in zip(context.messages[start:], context.records[start:], strict=True)
        if message.role != SUMMARY_ROLE
    ]
    return Uncovered([message for message, _ in said], [position for _, position in said], summary)


def _is_summary(message: Message) -> bool:
    return (
        message.role == SUMMARY_ROLE
        and type(message.metadata.get(COVERS_POSITION)) is int
        and type(message.metadata.get(COVERS_MESSAGE)) is str
    )


def evictable(rest: Uncovered, keep_turns: int) -> int:
    """How many of the uncovered messages lie before the last `keep_turns` turns."""
    leading = [group.messages[0].id for group in groups_of(rest.messages) if group.leads]
    if len(leading) <= keep_turns:
        return 0
    first_kept = leading[-keep_turns]
    return next(index for index, message in enumerate(rest.messages) if message.id == first_kept)


def said_in(messages: Sequence[Message]) -> list[Message]:
    """What a summarizer is given: whole groups, no system messages."""
    return [message for group in groups_of(messages) for message in group.messages]


def shown_system(system: Message | None, summary: Message | None, heading: str) -> Message | None:
    """The one system message of the view: the summary stands in it, behind the conversation's own."""
    if summary is None:
        return system
    text = f"{heading}\n{summary.text}"
    if system is None:
        return Message.system(text, id=summary.id, created_at=summary.created_at)
    return msgspec.structs.replace(system, parts=(*system.parts, Text(f"\n\n{text}")))


def turns_in(groups: Sequence[Group]) -> int:
    """How many turns these show."""
    return sum(group.starts_turn for group in groups)
