"""What the rules about advisors and vectors share: a model that says what its script says, and embeddings by words."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Any, Literal, cast

from chatkeep import ChatMemoryRepository, Message
from chatkeep.advisors import Answer, AsyncChatStream, ChatStream, MessageChatMemoryAdvisor, advise
from chatkeep.conformance.blocking import BlockingRepository, wait_for
from chatkeep.conformance.harness import Form
from chatkeep.memory import AsyncMessageWindowChatMemory, MessageWindowChatMemory
from chatkeep.vectors import AsyncVectorMemory, VectorHit, VectorItem, VectorMemory

Way = Literal["call", "stream"]
Script = Sequence[Any]
"""Chunks; an exception among them is raised there."""


class Scripted:
    """A model. Each call takes the next script; `prompts` is what it was sent, `closed` counts streams that ended."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.prompts: list[list[Message]] = []
        self.closed = 0

    def _next(self, prompt: list[Message]) -> Script:
        self.prompts.append(list(prompt))
        prompt.clear()  # a model may do what it likes with its list
        return self._scripts.pop(0)


class SyncScripted(Scripted):
    def __call__(self, prompt: list[Message]) -> Iterator[Any]:
        return self._chunks(self._next(prompt))

    def _chunks(self, script: Script) -> Iterator[Any]:
        try:
            for chunk in script:
                if isinstance(chunk, BaseException):
                    raise chunk
                yield chunk
        finally:
            self.closed += 1


class AsyncScripted(Scripted):
    def __call__(self, prompt: list[Message]) -> AsyncIterator[Any]:
        return self._chunks(self._next(prompt))

    async def _chunks(self, script: Script) -> AsyncIterator[Any]:
        try:
            for chunk in script:
                await asyncio.sleep(0)
                if isinstance(chunk, BaseException):
                    raise chunk
                if chunk is STUCK:
                    await asyncio.sleep(60)
                yield chunk
        finally:
            self.closed += 1


STUCK = object()
"""In a script: the model doesn't go on."""


class Talk:
    """A conversation with a scripted model, in the form of the repository, by `call` or by `stream`."""

    def __init__(
        self,
        repository: ChatMemoryRepository,
        form: Form,
        conversation_id: str,
        *scripts: Script,
        on_error: Any = "discard",
        max_messages: int = 20,
    ) -> None:
        self.form = form
        self.repository = repository
        self.conversation_id = conversation_id
        self.model: Scripted = (SyncScripted if form == "sync" else AsyncScripted)(*scripts)
        self.memory: Any
        if form == "sync":
            self.memory = MessageWindowChatMemory(repository, max_messages)
        else:
            self.memory = AsyncMessageWindowChatMemory(cast(Any, repository).asynchronous, max_messages)
        self.advised = advise(cast(Any, self.model), MessageChatMemoryAdvisor(self.memory), on_error=on_error)

    def ask(self, way: Way, *messages: Message, read: int | None = None) -> Answer | None:
        """One turn. `read`: how many chunks are read of a stream before it is left; None with no answer then."""
        named: dict[str, Any] = {"conversation_id": self.conversation_id}
        if self.form == "async":
            return wait_for(self._ask(way, messages, named, read))
        if way == "call":
            return self.advised.call(messages, **named)
        with self.advised.stream(messages, **named) as stream:
            return _read(stream, read)

    async def _ask(
        self, way: Way, messages: Sequence[Message], named: dict[str, Any], read: int | None
    ) -> Answer | None:
        if way == "call":
            return await self.advised.acall(messages, **named)
        async with self.advised.astream(messages, **named) as stream:
            return await _read_async(stream, read)

    def stored(self) -> list[Message]:
        """The log."""
        return self.repository.find_by_conversation_id(self.conversation_id)

    def say_no_more(self, error: type[BaseException], way: Way, *messages: Message) -> BaseException:
        """A turn that ends with an error, which is given."""
        with contextlib.suppress(Exception):
            try:
                self.ask(way, *messages)
            except error as found:
                return found
        raise AssertionError(f"the turn did not end with {error.__name__}")


def _read(stream: ChatStream, read: int | None) -> Answer | None:
    for count, _ in enumerate(stream, 1):
        if count == read:
            break
    return stream.answer


async def _read_async(stream: AsyncChatStream, read: int | None) -> Answer | None:
    count = 0
    async for _ in stream:
        count += 1
        if count == read:
            break
    return stream.answer


class WordEmbedding:
    """A vector for each text, one dimension for each word it has met. `batches` is what it was asked, in order."""

    DIMENSIONS = 64

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self.batches: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(list(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.DIMENSIONS
        for word in re.findall(r"\w+", text.lower()):
            vector[self._words.setdefault(word, len(self._words) % self.DIMENSIONS)] += 1.0
        return vector


class ListStore:
    """The smallest VectorStore there is."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], list[VectorItem]] = {}

    def last_position(self, owner: str, conversation_id: str) -> int | None:
        return max((item.position for item in self.items.get((owner, conversation_id), [])), default=None)

    def add(self, owner: str, conversation_id: str, items: Sequence[VectorItem]) -> None:
        known = self.items.setdefault((owner, conversation_id), [])
        positions = {item.position for item in known}
        known += [item for item in items if item.position not in positions]

    def search(
        self, owner: str, conversation_id: str | None, vector: Sequence[float], top_k: int, threshold: float
    ) -> list[VectorHit]:
        hits = [
            VectorHit(key[1], item.position, sum(a * b for a, b in zip(item.vector, vector, strict=True)))
            for key, items in self.items.items()
            if key[0] == owner and conversation_id in (None, key[1])
            for item in items
            if item.vector is not None
        ]
        found = [hit for hit in hits if hit.score >= threshold]
        return sorted(found, key=lambda hit: (-hit.score, -hit.position))[:top_k]

    def remove(self, owner: str, conversation_id: str, positions: Collection[int] | None = None) -> None:
        kept = self.items.pop((owner, conversation_id), [])
        if positions is not None:
            self.items[owner, conversation_id] = [item for item in kept if item.position not in positions]


def vector_memory(repository: ChatMemoryRepository, embed: Any, **options: Any) -> VectorMemory:
    """A vector memory of the repository's form, with the methods of the synchronous one."""
    named = {"model": "words", **options}
    if isinstance(repository, BlockingRepository):
        return cast(
            VectorMemory, BlockingRepository(cast(Any, AsyncVectorMemory(repository.asynchronous, embed, **named)))
        )
    return VectorMemory(repository, embed, **named)
