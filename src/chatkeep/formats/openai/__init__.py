"""OpenAI chat-completions messages <-> Message, without loss both ways. Dicts only: no SDK, no network.

What a Message has no field for is kept, as it was, under `extra["openai"]` of the message or part that it belongs
to; what OpenAI has no field for is refused with its path. docs/formats.md has the tables.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.formats.openai import reading, writing
from chatkeep.formats.openai.shapes import NOTES
from chatkeep.formats.openai.writing import ChatLosses
from chatkeep.formats.shared.losses import HINT
from chatkeep.formats.shared.objects import given, list_of
from chatkeep.message import Message

__all__ = ["from_openai", "messages_from_openai", "messages_to_openai", "to_openai"]


def from_openai(
    message: dict[str, Any],
    *,
    id: str | None = None,
    created_at: dt.datetime | None = None,
    metadata: dict[str, Any] | None = None,
) -> Message:
    """The Message of an OpenAI message dict; `to_openai` gives an equal dict back.

    `id`, `created_at` and `metadata` have no place in OpenAI's format: give those of a message that came from here.
    Raises InvalidMessageError (or UnstorableValueError for what is no JSON) with the path of what is wrong.
    """
    return reading.read_message(message, "message", given(id=id, created_at=created_at, metadata=metadata))


def to_openai(message: Message, *, drop_unsupported: bool = False, reasoning: bool = True) -> dict[str, Any]:
    """The OpenAI dict of a Message, without its `id`, `created_at` and `metadata`.

    Raises InvalidMessageError with the path of what the format can't say, such as a thinking signature or
    `is_error`; with `drop_unsupported` that is left out, and parts are put into the order that the format has.
    `reasoning=False` leaves thinking out in any case: only some providers know `reasoning_content`, OpenAI does not.
    A message that needs several dicts, such as one with two tool results, is for `messages_to_openai`.
    """
    dicts = writing.write_message(message, "", ChatLosses(NOTES, drop_unsupported, reasoning=reasoning))
    if len(dicts) != 1:
        raise InvalidMessageError(f"the message makes {len(dicts)} OpenAI messages, not one; use messages_to_openai")
    return dicts[0]


def messages_from_openai(messages: Iterable[dict[str, Any]]) -> list[Message]:
    """The Messages of a list of OpenAI dicts, one for one."""
    return [
        reading.read_message(message, f"messages[{index}]", {})
        for index, message in enumerate(list_of(messages, "messages"))
    ]


def messages_to_openai(
    messages: Iterable[Message], *, drop_unsupported: bool = False, reasoning: bool = True, hint: str = HINT
) -> list[dict[str, Any]]:
    """The OpenAI dicts of some Messages, in order, with the options of `to_openai`.

    A message with several tool results, or with results beside other parts, becomes several dicts: one of role
    "tool" per result, in the order of the parts. With `drop_unsupported` a message of which nothing is left makes none.
    `hint` ends the texts of refusals.
    """
    losses = ChatLosses(NOTES, drop_unsupported, hint, reasoning)
    return [
        made
        for index, message in enumerate(messages)
        for made in writing.write_message(message, f"messages[{index}].", losses)
    ]
