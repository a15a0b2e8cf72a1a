"""VectorMemory and AsyncVectorMemory: messages found by meaning. The operations are those of operations.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, TypeVar

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.errors import UnsupportedOperationError
from chatkeep.memory.construction import check_repository
from chatkeep.memory.limits import check_limit
from chatkeep.memory.steps import run, run_async
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.repository import Calls
from chatkeep.values import UNSAFE_IN_NAMES
from chatkeep.vectors.embedding import AsyncEmbed, Embed
from chatkeep.vectors.index import Index, Recalled, StoreIndex, TableIndex
from chatkeep.vectors.operations import VectorOperations
from chatkeep.vectors.store import AsyncVectorStore, VectorStore, check_store

__all__ = ["AsyncVectorMemory", "Recalled", "VectorMemory"]

R = TypeVar("R", bound="ChatMemoryRepository | AsyncChatMemoryRepository")
ROLES = ("user", "assistant")
MAX_MODEL_LENGTH = 255


class _VectorMemory(Generic[R]):
    _form: type[R]
    repository: R

    def _prepare(
        self,
        repository: R,
        embed: object,
        model: str,
        store: object,
        distance: str | None,
        roles: Iterable[str],
        batch_size: int,
        in_thread: Callable[[Callable[[], None]], Any],
    ) -> None:
        check_repository(repository, self._form, type(self).__name__)
        if not callable(embed):
            raise TypeError(f"embed: expected a function of a list of texts, got {type(embed).__name__}")
        if isinstance(roles, str):
            raise TypeError("roles: expected several, such as ('user', 'assistant')")
        self.repository = repository
        self.model = check_model(model)
        if not repository.capabilities.stable_positions:
            raise UnsupportedOperationError(
                f"the {repository.backend} backend does not offer 'stable_positions', by which vectors name messages"
            )
        index: Index
        if store is None:
            index = TableIndex(repository._unchecked.backend.vectors(model, distance), in_thread)
        else:
            check_store(store)
            if distance is not None:
                raise ValueError("distance: a store of your own compares vectors in its own way")
            index = StoreIndex(store)
            repository._forget_vectors_in(store)
        self._operations = VectorOperations(
            self._calls, index, embed, tuple(roles), check_limit(batch_size, "batch_size")
        )

    def _calls(self) -> Calls:
        return self.repository._calls

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r} over {self.repository!r}>"


class VectorMemory(_VectorMemory[ChatMemoryRepository]):
    """Finds the messages of a conversation, or of all of the owner's, that are similar to a text. From any thread.

    `embed`: a function that gives a vector for each text of a list; it gets up to `batch_size` at a time, and cuts what
    is too long for its model itself.
    `model`: a name for what `embed` does. Vectors of different names never meet; all of a name have one dimension.
    `store`: None keeps vectors in the tables of the repository's database (SQLite, PostgreSQL). There a message that
    goes, by whatever way, takes its vector with it in the same transaction. A VectorStore keeps them elsewhere, for any
    backend; it holds no text, what it finds is read from the log, and `repository.delete_by_conversation_id` of this
    process empties it too.
    `distance`: on SQLite "sqlite-vec" (the default, an extension) or "numpy" (a function in this process).
    `roles`: whose messages are found; those without text never are.

    The log is the truth, and vectors are an index of it: messages get theirs in order, when a search of their
    conversation or `index` meets them, whoever wrote them. What left the context (`clear` of a memory) isn't found, nor
    what was deleted (`eviction="delete"`) or has expired.

    Methods raise EmbeddingError for what `embed` should not have given, what `embed` and the store raise, what the
    repository's methods raise, and SchemaError where the tables of vectors are missing: `chatkeep migrate --vectors`.
    Making one raises UnsupportedOperationError without a store on a backend that has no tables of vectors.
    """

    _form = ChatMemoryRepository

    def __init__(
        self,
        repository: ChatMemoryRepository,
        embed: Embed,
        *,
        model: str,
        store: VectorStore | None = None,
        distance: str | None = None,
        roles: Iterable[str] = ROLES,
        batch_size: int = 64,
    ) -> None:
        self._prepare(repository, embed, model, store, distance, roles, batch_size, lambda work: work())

    def search(
        self,
        conversation_id: str | None,
        query: str,
        *,
        top_k: int = 5,
        threshold: float | None = None,
        exclude: Collection[str] = (),
    ) -> list[Recalled]:
        """The `top_k` (1 to 1,000) live messages most similar to `query`, the most similar first.

        With None for the conversation, of all conversations of the owner, as far as they are indexed. `threshold`: the
        least similarity, -1 to 1. `exclude`: ids of messages that are left out. Of a conversation up to 256 messages
        that have no vector yet get theirs first; for a longer backlog call `index`.
        """
        return run(self.repository, self._operations.search(conversation_id, query, top_k, threshold, exclude))

    def index(self, conversation_id: str) -> int:
        """Give every message of the conversation its vector, in batches; how many texts were embedded."""
        return run(self.repository, self._operations.index(conversation_id))

    def delete_by_conversation_id(self, conversation_id: str) -> None:
        """Forget the vectors of this model for a conversation, not its messages: a later search makes them anew."""
        run(self.repository, self._operations.delete(conversation_id))


class AsyncVectorMemory(_VectorMemory[AsyncChatMemoryRepository]):
    """VectorMemory, awaited. `embed` and the store may be asynchronous."""

    _form = AsyncChatMemoryRepository

    def __init__(
        self,
        repository: AsyncChatMemoryRepository,
        embed: AsyncEmbed,
        *,
        model: str,
        store: AsyncVectorStore | VectorStore | None = None,
        distance: str | None = None,
        roles: Iterable[str] = ROLES,
        batch_size: int = 64,
    ) -> None:
        self._prepare(repository, embed, model, store, distance, roles, batch_size, asyncio.to_thread)

    async def search(
        self,
        conversation_id: str | None,
        query: str,
        *,
        top_k: int = 5,
        threshold: float | None = None,
        exclude: Collection[str] = (),
    ) -> list[Recalled]:
        steps = self._operations.search(conversation_id, query, top_k, threshold, exclude)
        return await run_async(self.repository, steps)

    async def index(self, conversation_id: str) -> int:
        return await run_async(self.repository, self._operations.index(conversation_id))

    async def delete_by_conversation_id(self, conversation_id: str) -> None:
        await run_async(self.repository, self._operations.delete(conversation_id))


for _name in ("search", "index", "delete_by_conversation_id"):
    getattr(AsyncVectorMemory, _name).__doc__ = getattr(VectorMemory, _name).__doc__


def check_model(model: object) -> str:
    """A name of 1 to 255 printable characters."""
    if not isinstance(model, str):
        raise TypeError(f"model: expected the name of the embedding model, got {type(model).__name__}")
    if not 1 <= len(model) <= MAX_MODEL_LENGTH or UNSAFE_IN_NAMES.search(model) or model != model.strip():
        raise ValueError(f"model: expected 1 to {MAX_MODEL_LENGTH} characters, no control characters, got {model!r}")
    return model
