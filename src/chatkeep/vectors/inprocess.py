"""InProcessVectorStore: vectors in this process, compared by numpy."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Any

from chatkeep.errors import ConfigurationError
from chatkeep.storage.vectors import VectorItem
from chatkeep.vectors.store import VectorHit


class InProcessVectorStore:
    """A VectorStore in the memory of this process, exact, for any backend. It is gone with the process, and is then
    made anew from the log: that costs the embedding of what is searched. Use it from any thread.

    One store belongs to one repository and one model. Takes 4 bytes for each number of a vector. Needs numpy:
    `pip install 'chatkeep[vectors]'`.
    """

    def __init__(self) -> None:
        try:
            import numpy
        except ImportError as error:
            raise ConfigurationError(
                "InProcessVectorStore needs numpy, which is not installed; run: pip install 'chatkeep[vectors]'"
            ) from error
        self._numpy: Any = numpy
        self._lock = threading.Lock()
        self._conversations: dict[tuple[str, str], _Vectors] = {}

    def last_position(self, owner: str, conversation_id: str) -> int | None:
        with self._lock:
            vectors = self._conversations.get((owner, conversation_id))
            return None if vectors is None else vectors.last

    def add(self, owner: str, conversation_id: str, items: Sequence[VectorItem]) -> None:
        if not items:
            return
        with self._lock:
            vectors = self._conversations.setdefault((owner, conversation_id), _Vectors())
            for item in items:
                if item.vector is not None:
                    vectors.rows[item.position] = self._numpy.asarray(item.vector, "float32")
            vectors.last = max(vectors.last, *(item.position for item in items))
            vectors.matrix = None

    def search(
        self, owner: str, conversation_id: str | None, vector: Sequence[float], top_k: int, threshold: float
    ) -> list[VectorHit]:
        with self._lock:
            chosen = [
                (key[1], self._stacked(vectors))
                for key, vectors in self._conversations.items()
                if key[0] == owner and conversation_id in (None, key[1]) and vectors.rows
            ]
        asked = self._numpy.asarray(vector, "float32")
        hits = [
            VectorHit(name, position, float(score))
            for name, (positions, matrix) in chosen
            for position, score in self._best(positions, matrix @ asked, top_k)
            if score >= threshold
        ]
        return sorted(hits, key=lambda hit: (-hit.score, -hit.position))[:top_k]

    def remove(self, owner: str, conversation_id: str, positions: Collection[int] | None = None) -> None:
        with self._lock:
            if positions is None:
                self._conversations.pop((owner, conversation_id), None)
                return
            vectors = self._conversations.get((owner, conversation_id))
            if vectors is not None:
                for position in positions:
                    vectors.rows.pop(position, None)
                vectors.matrix = None

    def __len__(self) -> int:
        """How many vectors it holds."""
        with self._lock:
            return sum(len(vectors.rows) for vectors in self._conversations.values())

    def _stacked(self, vectors: _Vectors) -> tuple[list[int], Any]:
        if vectors.matrix is None:
            vectors.matrix = (list(vectors.rows), self._numpy.stack(list(vectors.rows.values())))
        return vectors.matrix

    def _best(self, positions: list[int], scores: Any, top_k: int) -> list[tuple[int, float]]:
        count = min(top_k, len(positions))
        places = self._numpy.argpartition(-scores, count - 1)[:count] if count else []
        return [(positions[place], scores[place]) for place in places]


class _Vectors:
    """Of one conversation."""

    def __init__(self) -> None:
        self.rows: dict[int, Any] = {}
        self.last = 0
        self.matrix: tuple[list[int], Any] | None = None
        """The rows as one array, until they change."""
