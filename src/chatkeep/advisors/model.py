"""What a model is, and how its answer is put together from what it gives. No storage."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from chatkeep.errors import InvalidAnswerError
from chatkeep.message import ASSISTANT, PART_TYPES, Message, Part, Text, ToolCall

Chunk: TypeAlias = str | Part | Message
"""A piece of an answer: a `str` goes on with the text, a part is one more part of the message that is being said, and a
`Message` stands for itself: a call, the result of a tool, an answer in one piece."""

Output: TypeAlias = Message | str | Iterable[Chunk]
Model: TypeAlias = Callable[[list[Message]], Output]
"""Anything callable with the messages of a prompt: gives a Message, a text, or an iterable of chunks. A model that runs
its tools itself gives the calls and the results too, each as a Message, in their order."""

AsyncModel: TypeAlias = Callable[[list[Message]], Awaitable[Output | AsyncIterable[Chunk]] | AsyncIterable[Chunk]]
"""The same for `acall` and `astream`, which also take a Model that doesn't block."""

PARTIAL = "chatkeep.partial"
"""The metadata key, with the value True, of a message that was broken off and stored by `on_error="keep_partial"`."""


class Answer(msgspec.Struct, frozen=True):
    """What the model said in one turn: its calls, their results, and what it said in the end."""

    messages: tuple[Message, ...]
    repeated: bool = False
    """The turn had been stored by an earlier call with the same message ids: this is its answer, no model was asked."""

    @property
    def message(self) -> Message:
        """The last message."""
        return self.messages[-1]

    @property
    def text(self) -> str:
        """The text of the last message."""
        return self.message.text


class Collector:
    """Puts the messages of an answer together. `sent`: the ids of the prompt, which are no part of the answer."""

    def __init__(self, sent: Collection[str] = ()) -> None:
        self._sent = frozenset(sent)
        self._messages: list[Message] = []
        self._parts: list[Part] = []
        self._text: list[str] = []

    def add(self, chunk: object) -> None:
        """Take one chunk; InvalidAnswerError for what is none."""
        if isinstance(chunk, str):
            self._text.append(chunk)
        elif type(chunk) is Message:
            self._end_message()
            if chunk.id not in self._sent:
                self._messages.append(chunk)
        elif type(chunk) in PART_TYPES:
            self._end_text()
            self._parts.append(chunk)  # type: ignore[arg-type]
        else:
            raise InvalidAnswerError(
                f"the model gave a {type(chunk).__name__}; expected a Message, a str, a part such as ToolCall(…), or "
                f"an iterable of these"
            )

    def finish(self) -> tuple[Message, ...]:
        """The whole answer; InvalidAnswerError where there is none."""
        self._end_message()
        if not self._messages:
            raise InvalidAnswerError("the model gave no message at all; an answer without content is a Message too")
        return tuple(self._messages)

    def partial(self) -> list[Message]:
        """What can be stored of an answer that was broken off: no call without all its results.

        A message that wasn't said to its end is marked (PARTIAL). Of a message with open calls its text is kept.
        """
        self._end_text()
        kept, begun = list(self._messages), self._parts
        group = next((index for index in reversed(range(len(kept))) if kept[index].tool_calls), None)
        if group is not None:
            answered = {result.call_id for message in kept[group + 1 :] for result in message.tool_results}
            if any(call.id not in answered for call in kept[group].tool_calls):
                begun = [part for part in kept[group].parts if isinstance(part, Text)]
                kept = kept[:group]
        # A thought without what it led to is refused by some providers, and a call begun is no call yet.
        said = [part for part in begun if isinstance(part, Text) and part.text.strip()]
        if said:
            kept.append(Message(ASSISTANT, tuple(said), metadata={PARTIAL: True}))
        return kept

    def _end_text(self) -> None:
        if self._text:
            self._parts.append(Text("".join(self._text)))
            self._text = []

    def _end_message(self) -> None:
        self._end_text()
        if self._parts:
            self._messages.append(Message(ASSISTANT, tuple(self._parts)))
            self._parts = []


def chunks_of(output: object) -> Iterator[object]:
    """The chunks of what a model gave; InvalidAnswerError for what is no answer."""
    if isinstance(output, str) or type(output) is Message or type(output) in PART_TYPES:
        return iter((output,))
    if isinstance(output, Iterable) and not isinstance(output, (bytes, dict)):
        return iter(output)
    what = type(output).__name__
    if isinstance(output, (Awaitable, AsyncIterable)):
        close(output)  # a coroutine that nobody awaits
        raise InvalidAnswerError(f"the model is asynchronous (it gave a {what}): use acall or astream")
    raise InvalidAnswerError(f"the model gave a {what}; expected a Message, a str or an iterable of chunks")


def close(chunks: Any) -> None:
    """End a stream of the model's that is not read to its end: a provider's connection hangs on it."""
    end = getattr(chunks, "close", None)
    if callable(end):
        end()


async def close_async(chunks: Any) -> None:
    """The same for an asynchronous one."""
    end = getattr(chunks, "aclose", None)
    if callable(end):
        await end()
    else:
        close(chunks)


def is_partial(message: Message) -> bool:
    """Whether it was broken off."""
    return message.metadata.get(PARTIAL) is True


def has_open_calls(messages: Iterable[Message]) -> bool:
    """Whether some call has no result among these messages."""
    calls: list[ToolCall] = []
    for message in messages:
        answered = {result.call_id for result in message.tool_results}
        calls = [call for call in calls if call.id not in answered] + message.tool_calls
    return bool(calls)
