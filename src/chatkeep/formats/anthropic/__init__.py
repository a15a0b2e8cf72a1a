"""Anthropic's messages <-> Message, without loss both ways. Dicts only: no SDK, no network.

What a Message has no field for is kept, as it was, under `extra["anthropic"]` of the message or part that it belongs
to; what Anthropic has no field for is refused with its path. docs/formats.md has the tables.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.formats.anthropic import reading, shapes
from chatkeep.formats.anthropic.writing import BlockLosses, content_form, write_blocks, write_message
from chatkeep.formats.shared.losses import HINT
from chatkeep.formats.shared.objects import Json, given, list_of
from chatkeep.message import Message

__all__ = ["from_anthropic", "messages_from_anthropic", "messages_to_anthropic", "to_anthropic"]


def from_anthropic(
    message: dict[str, Any],
    *,
    id: str | None = None,
    created_at: dt.datetime | None = None,
    metadata: dict[str, Any] | None = None,
) -> Message:
    """The Message of one dict of `messages`, or of a reply; `to_anthropic` gives an equal dict back.

    A user message that is tool results and nothing else becomes a message of role "tool". `id`, `created_at` and
    `metadata` have no place in the format: give those of a message that came from here.
    Raises InvalidMessageError (or UnstorableValueError for what is no JSON) with the path of what is wrong.
    """
    return reading.read_message(message, "message", given(id=id, created_at=created_at, metadata=metadata))


def to_anthropic(message: Message, *, drop_unsupported: bool = False, reply_fields: bool = True) -> dict[str, Any]:
    """The dict of a Message, without its `id`, `created_at` and `metadata`.

    Raises InvalidMessageError with the path of what the format can't say; with `drop_unsupported` that is left out.
    `reply_fields=False` leaves out what only replies have and a request may not send (`id`, `usage`, `stop_reason`, …).
    """
    made = write_message(message, "", BlockLosses(shapes.NOTES, drop_unsupported, reply_fields=reply_fields))
    if made is None:
        raise InvalidMessageError("nothing of the message can be said in Anthropic's format")
    return made


def messages_from_anthropic(
    messages: Iterable[dict[str, Any]], *, system: str | list[dict[str, Any]] | None = None
) -> list[Message]:
    """The Messages of a request's `messages`, one for one, behind one for its `system`."""
    read = [] if system is None else [reading.read_system(system, "system")]
    for index, item in enumerate(list_of(messages, "messages")):
        message = reading.read_message(item, f"messages[{index}]", {})
        before = read[-1].role if read else None
        if message.role == "tool" and before == "tool":
            message = _noting(message, content=shapes.APART)
        elif message.role == "system" and before in (None, "system"):
            message = _noting(message, role=shapes.IN_MESSAGES)
        read.append(message)
    return read


def messages_to_anthropic(
    messages: Iterable[Message],
    *,
    drop_unsupported: bool = False,
    reply_fields: bool = True,
    hint: str = HINT,
) -> dict[str, Any]:
    """`system` (where there is one) and `messages` of a request, with the options of `to_anthropic`.

    System messages at the start become `system`, later ones stay where they are. Messages of role "tool" behind one
    another become one user message, as the API wants all results of parallel calls together. `hint` ends the texts of
    refusals.
    """
    losses = BlockLosses(shapes.NOTES, drop_unsupported, hint, reply_fields)
    made: Json = {"messages": []}
    before: Message | None = None
    for index, message in enumerate(messages):
        path = f"messages[{index}]."
        if not made["messages"] and message.role in shapes.SYSTEM_ROLES and _plain_system(message):
            _add_system(made, message, path, losses)
            continue
        item = write_message(message, path, losses)
        if item is None:
            continue
        if before is not None and _one_turn(before, message):
            made["messages"][-1]["content"] += item["content"]
        else:
            made["messages"].append(item)
        before = message
    return made


def _noting(message: Message, **noted: str) -> Message:
    own = {**message.extra.get(shapes.NOTES.key, {}), **noted}
    return Message(
        message.role, message.parts, message.id, message.created_at, extra={**message.extra, shapes.NOTES.key: own}
    )


def _plain_system(message: Message) -> bool:
    """Whether it can be `system`, which is its content and nothing else."""
    noted = message.extra.get(shapes.NOTES.key, {})
    return type(noted) is dict and noted.keys() <= {"content"}


def _add_system(made: Json, message: Message, path: str, losses: BlockLosses) -> None:
    form = losses.notes(message.extra, f"{path}extra").get("content")
    blocks = write_blocks(message, path, losses)
    if message.parts and not blocks:
        return
    if "system" not in made:
        made["system"] = content_form(blocks, form, f"{losses.path(path)}.content", losses)
        return
    if isinstance(made["system"], str):
        made["system"] = [{"type": "text", "text": made["system"]}]
    made["system"] += blocks


def _one_turn(before: Message, message: Message) -> bool:
    return before.role == message.role == "tool" and shapes.NOTES.key not in message.extra
