"""advise: a model with advisors around it; call, stream, acall and astream. What they do in common is turn.py's."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable
from typing import Any, Literal

from chatkeep.advisors.model import Answer, AsyncModel, Chunk, Collector, Model, chunks_of, close, close_async
from chatkeep.advisors.request import Advisor, Memory, MemoryAdvisor, Request
from chatkeep.advisors.stream import AsyncChatStream, ChatStream
from chatkeep.advisors.turn import POLICIES, Turns
from chatkeep.advisors.vector_store import VectorStoreChatMemoryAdvisor
from chatkeep.memory.limits import check_choice, named
from chatkeep.memory.steps import Ask, Steps, run, run_async
from chatkeep.message import Message

OnError = Literal["discard", "keep_user", "keep_partial"]


def advise(model: Model | AsyncModel, *advisors: Advisor, on_error: OnError = "discard") -> Advised:
    """A model that remembers: the advisors change the prompt in the order given, and the turn is kept.

    `model`: anything callable with a list of messages; see `Model` for what it may give.
    `advisors`: one that keeps turns (MessageChatMemoryAdvisor, PromptChatMemoryAdvisor) comes first, others follow.
    With a VectorStoreChatMemoryAdvisor it may be missing.
    `on_error`: what is stored of a turn that failed, was cancelled, or whose stream was broken off:

    - "discard": nothing. A turn is in the log whole, or it never was.
    - "keep_user": the new messages, without an answer.
    - "keep_partial": also what the model had said, with calls only where all their results are there; a message that
      was broken off has `metadata["chatkeep.partial"]`.

    After each of them the next prompt of a memory with `boundary="turn"` is valid.

    Raises TypeError for a model that can't be called and for what is no advisor, ValueError for two memories, for a
    memory's advisor behind another, and where nobody keeps the turns.
    """
    if not callable(model):
        raise TypeError(f"model: expected something to call with a list of messages, got {type(model).__name__}")
    for index, advisor in enumerate(advisors):
        if not isinstance(advisor, Advisor):
            raise TypeError(
                f"advisors[{index}]: expected an advisor such as MessageChatMemoryAdvisor(…), got {named(advisor)}"
            )
        if index and isinstance(advisor, MemoryAdvisor):
            raise ValueError(
                f"advisors[{index}]: {type(advisor).__name__} must come first, and there is one memory to a chain"
            )
    check_choice(on_error, "on_error", *POLICIES)
    return Advised(model, Turns(_memory(advisors), advisors, on_error))


def _memory(advisors: tuple[Advisor, ...]) -> Memory:
    if advisors and isinstance(advisors[0], MemoryAdvisor):
        return advisors[0].memory
    for advisor in advisors:
        if isinstance(advisor, VectorStoreChatMemoryAdvisor):
            return advisor.own_memory()
    raise ValueError("advisors: nobody keeps the turns; give MessageChatMemoryAdvisor(memory) first")


class Advised:
    """A model with its advisors. It holds no state of a turn: use it from any thread and for any conversation.

    Each method takes the new messages of a turn and the id of its conversation, which has no default. What the model
    says is stored with them, results of tools included, in one write after it ended. A turn of which every new message
    and the answer are in the memory's view already is not asked again: its stored answer is given (`Answer.repeated`),
    so repeating a call whose outcome is unknown is safe as long as the message ids are the same.

    Raises what the model raises; InvalidConversationIdError and TypeError for arguments, InvalidAnswerError where the
    model gave no answer, and TurnNotStoredError, which holds the turn, where the answer could not be stored.
    """

    def __init__(self, model: Model | AsyncModel, turns: Turns) -> None:
        self._model: Any = model
        self._turns = turns

    def call(self, messages: Message | Iterable[Message], *, conversation_id: str) -> Answer:
        """Ask the model, and give the whole answer."""
        self._check_form(asynchronous=False)
        return run(None, self._turn(conversation_id, messages, _collect))

    async def acall(self, messages: Message | Iterable[Message], *, conversation_id: str) -> Answer:
        """The same, awaited. When it is cancelled, `on_error` applies; `asyncio.timeout` limits it."""
        self._check_form(asynchronous=True)
        return await run_async(None, self._turn(conversation_id, messages, _collect_async))

    def stream(self, messages: Message | Iterable[Message], *, conversation_id: str) -> ChatStream:
        """Ask the model, and give the answer's chunks as they come."""
        self._check_form(asynchronous=False)
        stream = ChatStream()
        stream.chunks = self._stream(stream, messages, conversation_id)
        return stream

    def astream(self, messages: Message | Iterable[Message], *, conversation_id: str) -> AsyncChatStream:
        """The same for `async for`. Not awaited itself."""
        self._check_form(asynchronous=True)
        stream = AsyncChatStream()
        stream.chunks = self._astream(stream, messages, conversation_id)
        return stream

    def _turn(self, conversation_id: str, messages: Message | Iterable[Message], collect: Any) -> Steps[Answer]:
        begun = yield from self._turns.begin(conversation_id, messages)
        if isinstance(begun, Answer):
            return begun
        collector = _collector(begun)
        try:
            yield Ask(collect, self._model, list(begun.messages), collector)
            said = collector.finish()
        except BaseException as error:
            yield from self._turns.fail(begun, collector, error)
            raise
        return (yield from self._turns.end(begun, said))

    def _stream(
        self, stream: ChatStream, messages: Message | Iterable[Message], conversation_id: str
    ) -> Generator[Chunk, None, None]:
        begun = run(None, self._turns.begin(conversation_id, messages))
        if isinstance(begun, Answer):
            yield from begun.messages
            stream.answer = begun
            return
        collector = _collector(begun)
        try:
            yield from _chunks(self._model, list(begun.messages), collector)
            said = collector.finish()
        except BaseException as error:
            run(None, self._turns.fail(begun, collector, error))
            raise
        stream.answer = run(None, self._turns.end(begun, said))

    async def _astream(
        self, stream: AsyncChatStream, messages: Message | Iterable[Message], conversation_id: str
    ) -> AsyncGenerator[Chunk, None]:
        begun = await run_async(None, self._turns.begin(conversation_id, messages))
        if isinstance(begun, Answer):
            for message in begun.messages:
                yield message
            stream.answer = begun
            return
        collector = _collector(begun)
        chunks = _chunks_async(self._model, list(begun.messages), collector)
        try:
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()
            said = collector.finish()
        except BaseException as error:
            await run_async(None, self._turns.fail(begun, collector, error))
            raise
        stream.answer = await run_async(None, self._turns.end(begun, said))

    def _check_form(self, *, asynchronous: bool) -> None:
        if inspect.iscoroutinefunction(self._turns.memory.get) is not asynchronous:
            wanted, form = ("acall and astream", "an Async…") if asynchronous else ("call and stream", "a synchronous")
            raise TypeError(f"{wanted} need {form} memory, and this one is {type(self._turns.memory).__name__}")


def _collector(request: Request) -> Collector:
    return Collector([message.id for message in (*request.messages, *request.new)])


def _collect(model: Any, prompt: list[Message], collector: Collector) -> None:
    for _ in _chunks(model, prompt, collector):
        pass


async def _collect_async(model: Any, prompt: list[Message], collector: Collector) -> None:
    async for _ in _chunks_async(model, prompt, collector):
        pass


def _chunks(model: Any, prompt: list[Message], collector: Collector) -> Generator[Any, None, None]:
    chunks = chunks_of(model(prompt))
    try:
        for chunk in chunks:
            collector.add(chunk)
            yield chunk
    finally:
        close(chunks)


async def _chunks_async(model: Any, prompt: list[Message], collector: Collector) -> AsyncGenerator[Any, None]:
    output = model(prompt)
    if inspect.isawaitable(output):
        output = await output
    if not isinstance(output, AsyncIterable):
        for chunk in _chunks(lambda _: output, prompt, collector):
            yield chunk
        return
    chunks = aiter(output)
    try:
        async for chunk in chunks:
            collector.add(chunk)
            yield chunk
    finally:
        await close_async(chunks)
