"""LangChain4j's message JSON (ChatMessageSerializer) <-> Message, without loss both ways. Dicts only: no Java.

`attributes`, which LangChain4j stores and never sends to a model, are the `metadata` of a Message. What a Message has
no field for is kept under `extra["langchain4j"]`; what LangChain4j has no field for is refused with its path.
docs/formats.md has the tables.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.formats.langchain4j.reading import read_message
from chatkeep.formats.langchain4j.shapes import NOTES
from chatkeep.formats.langchain4j.writing import write_message
from chatkeep.formats.shared.losses import HINT, Losses
from chatkeep.formats.shared.objects import given, list_of
from chatkeep.message import Message

__all__ = ["from_langchain4j", "messages_from_langchain4j", "messages_to_langchain4j", "to_langchain4j"]


def from_langchain4j(
    message: dict[str, Any], *, id: str | None = None, created_at: dt.datetime | None = None
) -> Message:
    """The Message of a dict; `to_langchain4j` gives an equal dict back.

    `id` and `created_at` have no place in the format: give those of a message that came from here.
    Raises InvalidMessageError (or UnstorableValueError for what is no JSON) with the path of what is wrong.
    """
    return read_message(message, "message", given(id=id, created_at=created_at))


def to_langchain4j(message: Message, *, drop_unsupported: bool = False) -> dict[str, Any]:
    """The dict of a Message, without its `id` and `created_at`.

    Raises InvalidMessageError with the path of what the format can't say; with `drop_unsupported` that is left out.
    A message that needs several dicts, such as one with two tool results, is for `messages_to_langchain4j`.
    """
    dicts = write_message(message, "", Losses(NOTES, drop_unsupported))
    if len(dicts) != 1:
        raise InvalidMessageError(
            f"the message makes {len(dicts)} LangChain4j messages, not one; use messages_to_langchain4j"
        )
    return dicts[0]


def messages_from_langchain4j(messages: Iterable[dict[str, Any]]) -> list[Message]:
    """The Messages of the list that a ChatMemoryStore holds as JSON, one for one."""
    return [read_message(item, f"messages[{index}]", {}) for index, item in enumerate(list_of(messages, "messages"))]


def messages_to_langchain4j(
    messages: Iterable[Message], *, drop_unsupported: bool = False, hint: str = HINT
) -> list[dict[str, Any]]:
    """The dicts of some Messages, in order; one with several results becomes one dict for each.

    With `drop_unsupported` a message of which nothing is left makes none. `hint` ends the texts of refusals.
    """
    losses = Losses(NOTES, drop_unsupported, hint)
    return [
        item for index, message in enumerate(messages) for item in write_message(message, f"messages[{index}].", losses)
    ]
