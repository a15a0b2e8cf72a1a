"""What a run can find: a broken promise, with where it was seen. Judges nothing itself."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, field


class Promise(enum.StrEnum):
    """What is watched during the whole run; the rules of docs/contract.md stand in brackets."""

    KEPT = "no acknowledged append is lost (C3)"
    TOGETHER = "the messages of one call appear all, once, side by side and in order (C1, C3, C4)"
    REPLACED = "a replaced conversation is one writer's list, whole and not an old one (C2, C16)"
    GONE = "what was there before an acknowledged deletion does not come back (C20)"
    GROWING = "versions and positions only grow (C1)"
    OWN = "a worker reads its own writes (C16)"
    ONE_WINS = "of writes with the same expected version at most one wins (C3)"
    OUTCOME = "a write that was not applied does not appear"
    LOSSLESS = "a message comes back as it was written (C8)"
    DIRECTORY = "the directory lists what there is, once (C1, C20)"
    ERRORS = "only the documented errors are raised"
    POOL = "after the load every connection is free, and none is left open (C15)"
    ENDS = "every call ends"


@dataclass(frozen=True)
class Finding:
    """One broken promise."""

    promise: Promise
    text: str
    conversation: str = ""
    worker: int | None = None
    moment: float = field(default_factory=time.monotonic)
    trace: str = ""
    """Where an error of an unexpected class came from."""


class ViolationError(Exception):
    """Ends the work of whoever found it; `promise`, `conversation` and `text` say what."""

    def __init__(self, promise: Promise, conversation: str, text: str) -> None:
        super().__init__(f"{promise}: {conversation}: {text}")
        self.promise = promise
        self.conversation = conversation
        self.text = text
