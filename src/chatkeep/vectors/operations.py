"""The operations of a vector memory, each once, as steps: bring the index up to date, search, forget."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from chatkeep.errors import EmbeddingError
from chatkeep.identifiers import check_conversation_id
from chatkeep.memory.steps import Ask, Steps
from chatkeep.storage.repository import Calls
from chatkeep.storage.vectors import VectorItem
from chatkeep.vectors.embedding import check_vectors
from chatkeep.vectors.index import Index, Placed, Recalled

AT_ONCE = 256
"""Messages that one search, or one round of `index`, looks at."""
MOST = 1000
"""The largest `top_k`."""


class VectorOperations:
    """Every method gives the steps of one operation. `calls` raises for a closed repository."""

    def __init__(
        self, calls: Callable[[], Calls], index: Index, embed: Any, roles: Collection[str], batch_size: int
    ) -> None:
        self._calls = calls
        self._index = index
        self._embed_texts = embed
        self._roles = frozenset(roles)
        self._batch_size = batch_size
        self._dimensions: int | None = None

    def index(self, conversation_id: str) -> Steps[int]:
        calls = self._calls()
        check_conversation_id(conversation_id)
        yield from self._index.prepare()
        count = 0
        while pending := (yield from self._index.pending(calls, conversation_id, AT_ONCE)):
            vectors = yield from self._embed(self._texts(pending))
            stored = yield from self._store(calls, conversation_id, pending, vectors)
            count += len(vectors)
            if not stored or len(pending) < AT_ONCE:
                break
        return count

    def search(
        self,
        conversation_id: str | None,
        query: str,
        top_k: int,
        threshold: float | None,
        exclude: Collection[str],
    ) -> Steps[list[Recalled]]:
        calls = self._calls()
        if conversation_id is not None:
            check_conversation_id(conversation_id)
        if not isinstance(query, str):
            raise TypeError(f"query: expected str, got {type(query).__name__}")
        check_top_k(top_k)
        least = check_threshold(threshold)
        if isinstance(exclude, (str, bytes)):
            raise TypeError("exclude: expected message ids, got one text")
        yield from self._index.prepare()
        pending: list[Placed] = []
        if conversation_id is not None:
            pending = yield from self._index.pending(calls, conversation_id, AT_ONCE)
        asked, *vectors = yield from self._embed([query, *self._texts(pending)])
        if pending and conversation_id is not None:
            yield from self._store(calls, conversation_id, pending, vectors)
        if asked is None:
            return []
        left_out = frozenset(exclude)
        hits = yield from self._index.search(
            calls, conversation_id, asked, top_k + len(left_out), -1.0 if least is None else least
        )
        return [hit for hit in hits if hit.message.id not in left_out][:top_k]

    def delete(self, conversation_id: str) -> Steps[None]:
        calls = self._calls()
        check_conversation_id(conversation_id)
        yield from self._index.prepare()
        yield from self._index.delete(calls, conversation_id)

    # --- steps ---

    def _embed(self, texts: list[str]) -> Steps[list[list[float] | None]]:
        vectors: list[list[float] | None] = []
        for start in range(0, len(texts), self._batch_size):
            batch = texts[start : start + self._batch_size]
            found = check_vectors((yield Ask(self._embed_texts, batch)), len(batch))
            for vector in found:
                if vector is not None and self._dimensions not in (None, len(vector)):
                    raise EmbeddingError(
                        f"embed: a vector has {len(vector)} dimensions, and earlier ones have {self._dimensions}"
                    )
                if vector is not None:
                    self._dimensions = len(vector)
            vectors += found
        return vectors

    def _store(
        self, calls: Calls, conversation_id: str, pending: Sequence[Placed], vectors: Sequence[list[float] | None]
    ) -> Steps[bool]:
        of_texts = iter(vectors)
        rows = [VectorItem(placed.position, next(of_texts) if self._has_text(placed) else None) for placed in pending]
        return (yield from self._index.add(calls, conversation_id, rows, self._dimensions))

    def _texts(self, pending: Sequence[Placed]) -> list[str]:
        return [placed.message.text for placed in pending if self._has_text(placed)]

    def _has_text(self, placed: Placed) -> bool:
        return placed.message.role in self._roles and bool(placed.message.text.strip())


def check_top_k(value: object) -> int:
    """1 to 1,000."""
    if type(value) is not int:
        raise TypeError(f"top_k: expected int, got {type(value).__name__}")
    if not 1 <= value <= MOST:
        raise ValueError(f"top_k: expected 1 to {MOST}, got {value}")
    return value


def check_threshold(value: object) -> float | None:
    """-1 to 1, or None for no threshold."""
    if value is None:
        return None
    if type(value) not in (int, float):
        raise TypeError(f"threshold: expected a number from -1 to 1, or None, got {type(value).__name__}")
    number = float(value)  # type: ignore[arg-type]
    if math.isnan(number) or not -1 <= number <= 1:
        raise ValueError(f"threshold: expected -1 to 1, got {value}")
    return number
