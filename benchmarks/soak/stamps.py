"""Messages that say who wrote them: the stamp in the id fixes every other field, so that readers can check them all."""

from __future__ import annotations

import datetime as dt
import functools
import zlib
from typing import Any, NamedTuple

from benchmarks.soak.violation import Promise, ViolationError
from chatkeep import Media, Message, Text, Thinking, ToolCall

FREE = -1
"""`based_on` of a write without expected version."""
BIG = 100_000
"""Characters of the large texts; one message in a hundred or so has one."""
_FILLER = "Some answer of the usual length, with a number in it: 17. " * (BIG // 50)
_ODD = "NUL \x00, half a pair \ud83d, é and e\u0301, 日本語, \U0001f600, \u202eright to left, {braces} %s :x ' \" \\ "
_MOMENT = dt.datetime(2024, 2, 29, 12, 0, tzinfo=dt.UTC)


class Stamp(NamedTuple):
    """One message of one call of one worker."""

    conversation: str
    epoch: int
    """How often the conversation has been deleted and begun anew."""
    worker: int
    call: int
    """Counts from 1 for each worker, conversation and epoch."""
    place: int
    """Within the call, from 0."""
    of: int
    """Messages of the call."""
    based_on: int = FREE
    """The expected version of the call."""

    @property
    def id(self) -> str:
        return "/".join(map(str, self))

    def __str__(self) -> str:
        return f"message {self.place + 1} of {self.of} of call {self.call} of worker {self.worker} (id {self.id})"


def batch(seed: int, first: Stamp) -> list[Message]:
    """The messages of the call that a stamp belongs to."""
    return [compose(seed, first._replace(place=place)) for place in range(first.of)]


def compose(seed: int, stamp: Stamp) -> Message:
    """The message of a stamp, always the same one."""
    message_id = stamp.id
    draw = zlib.crc32(f"{seed}/{message_id}".encode())
    length = BIG if draw % 101 == 0 else 20 + draw % 600
    text = f"{message_id} {_FILLER[draw % 50 : length]}"
    kind = draw // 101 % 12
    fields: dict[str, Any] = {"id": message_id, "created_at": _MOMENT + dt.timedelta(microseconds=draw)}
    if kind == 0:
        arguments = f'{{"n": 1.0, "id":"{message_id}"}}'
        calls = [ToolCall(f"call_{draw}_{number}", "search", arguments) for number in range(1 + draw % 3)]
        return Message.assistant(text, tool_calls=calls, **fields)
    if kind == 1:
        return Message.tool(text, call_id=f"call_{draw}", name="search", is_error=draw % 2 == 0, **fields)
    if kind == 2:
        return Message.user(text, metadata={"draw": draw, "deep": [{"a": None, "é\x00": [1.5, True]}]}, **fields)
    if kind == 3:
        return Message.user([Text(_ODD + text), Media("image/png", data=message_id.encode())], name="o'odd", **fields)
    if kind == 4:
        return Message.assistant([Thinking("hm", f"signature {draw}"), Text(text)], **fields)
    return (Message.user, Message.assistant)[stamp.place % 2](text, **fields)


def stamp_of(seed: int, message: Message, conversation: str) -> Stamp:
    """The stamp of a message that was read, after a look at every field of it."""
    stamp, written = _written(seed, message.id)
    if stamp is None or message != written:
        raise ViolationError(Promise.LOSSLESS, conversation, f"message {message.id!r} is not as any worker wrote it")
    if stamp.conversation != conversation:
        raise ViolationError(Promise.LOSSLESS, conversation, f"{stamp} was written to another conversation")
    return stamp


@functools.lru_cache(maxsize=10_000)
def _written(seed: int, message_id: str) -> tuple[Stamp, Message] | tuple[None, None]:
    """Cached, since all read the same; the message that is given to the repository is another object."""
    conversation, *numbers = message_id.split("/")
    try:
        stamp = Stamp(conversation, *map(int, numbers))
    except (TypeError, ValueError):
        return None, None
    return stamp, compose(seed, stamp)
