"""The conversation that the demo stores, as it stands in the file, and its turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from chatkeep.message import Message


def load_conversation() -> list[dict[str, Any]]:
    """examples/conversation.json: a file of the package in a wheel, of the project in a checkout."""
    packaged = files("chatkeep.cli") / "conversation.json"
    checkout = Path(__file__).resolve().parents[4] / "examples" / "conversation.json"
    text = (packaged if packaged.is_file() else checkout).read_text(encoding="utf-8")
    loaded: list[dict[str, Any]] = json.loads(text)
    return loaded


def turns(messages: list[Message]) -> Iterator[list[Message]]:
    """A turn begins with a user message; what stands before the first one belongs to the first turn."""
    turn: list[Message] = []
    for message in messages:
        if message.role == "user" and any(earlier.role == "user" for earlier in turn):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn
