"""The streams that `stream` and `astream` give: chunks to iterate, the whole answer afterwards, an end on demand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from types import TracebackType
from typing import Any, Self

from chatkeep.advisors.model import Answer, Chunk


class _Stream:
    answer: Answer | None = None
    """The whole answer, once the stream was read to its end and the turn is stored; None before."""


class ChatStream(_Stream):
    """The chunks of an answer as the model gives them. Use it in a `with`, or call `close`.

    Nothing happens before the first chunk is asked for. The turn is stored when the stream has been read to its end;
    a stream that is closed, left or broken before it is a turn that failed, and `on_error` applies.
    """

    def __init__(self) -> None:
        self.chunks: Generator[Chunk, None, None]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Chunk:
        return next(self.chunks)

    def close(self) -> None:
        """End it here, unless it has ended."""
        self.chunks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncChatStream(_Stream):
    """ChatStream for `async for`: in an `async with`, or with `aclose`."""

    def __init__(self) -> None:
        self.chunks: AsyncGenerator[Chunk, Any]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        return await anext(self.chunks)

    async def aclose(self) -> None:
        """End it here, unless it has ended."""
        await self.chunks.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
