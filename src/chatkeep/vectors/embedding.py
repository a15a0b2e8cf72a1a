"""What an embedding function is, and the checks of what it gives."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from chatkeep.errors import EmbeddingError

Vectors: TypeAlias = Sequence[Sequence[float]]
Embed: TypeAlias = Callable[[list[str]], Vectors]
"""A vector for each text, in order, all of one length: lists of numbers, or an array with a row for each text."""
AsyncEmbed: TypeAlias = Callable[[list[str]], Awaitable[Vectors] | Vectors]
"""The same for AsyncVectorMemory: also asynchronous."""

MAX_DIMENSIONS = 16_000
"""What pgvector stores."""


def check_vectors(given: Any, count: int) -> list[list[float] | None]:
    """The vectors of a batch of `count` texts, brought to length 1; None for one of zeros, which has no direction.

    Raises EmbeddingError where they are not as many, not of one length, or not finite numbers.
    """
    try:
        vectors = [[float(number) for number in vector] for vector in given]
    except (TypeError, ValueError) as error:
        raise EmbeddingError(
            f"embed: expected a vector of numbers for each text, got {type(given).__name__}"
        ) from error
    if len(vectors) != count:
        raise EmbeddingError(f"embed: {count} texts were given, and {len(vectors)} vectors came back")
    lengths = sorted({len(vector) for vector in vectors})
    if len(lengths) != 1 or not 1 <= lengths[0] <= MAX_DIMENSIONS:
        raise EmbeddingError(f"embed: vectors must have one length of 1 to {MAX_DIMENSIONS}, got {lengths}")
    return [_normalised(vector) for vector in vectors]


def _normalised(vector: list[float]) -> list[float] | None:
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise EmbeddingError("embed: a vector holds NaN or infinity, or numbers that are too large")
    return [number / length for number in vector] if length > 0 else None
