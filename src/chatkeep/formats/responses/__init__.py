"""Items of OpenAI's Responses API <-> Messages, without loss both ways. Dicts only: no SDK, no network.

What a Message has no field for is kept, as it was, under `extra["openai-responses"]` of the message or part that it
belongs to, and under `extra["openai-responses.item"]` of the part that an item begins with; what the format has no
field for is refused with its path. docs/formats.md has the tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chatkeep.formats.responses import reading, shapes
from chatkeep.formats.responses.writing import write_message
from chatkeep.formats.shared.losses import HINT, Losses
from chatkeep.message import Message

__all__ = ["messages_from_responses", "messages_to_responses"]


def messages_from_responses(items: str | Iterable[dict[str, Any]]) -> list[Message]:
    """The Messages of a request's `input`, or of a reply's `output`.

    What the model gave in one go (reasoning, texts, calls, items that the server ran) is one assistant Message; every
    other item is one. A string is one user message, and comes back as an item.
    Raises InvalidMessageError (or UnstorableValueError for what is no JSON) with the path of what is wrong.
    """
    return [Message.user(items)] if isinstance(items, str) else reading.read_items(items, "items")


def messages_to_responses(
    messages: Iterable[Message], *, drop_unsupported: bool = False, hint: str = HINT
) -> list[dict[str, Any]]:
    """The items of some Messages, in order, without their `id`, `created_at` and `metadata`.

    Raises InvalidMessageError with the path of what the format can't say, such as reasoning that OpenAI didn't make;
    with `drop_unsupported` that is left out. `hint` ends the texts of refusals.
    """
    losses = Losses(shapes.NOTES, drop_unsupported, hint)
    return [
        item for index, message in enumerate(messages) for item in write_message(message, f"messages[{index}].", losses)
    ]
