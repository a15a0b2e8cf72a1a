"""VectorStore: what a store of vectors outside of the repository's database offers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from chatkeep.storage.vectors import VectorItem


class VectorHit(msgspec.Struct, frozen=True):
    """A place that was found, with its similarity: the cosine, -1 to 1."""

    conversation_id: str
    position: int
    score: float


class VectorStore(Protocol):
    """The vectors of one embedding model for the messages of one repository.

    It is given no text of a message and gives none: what it finds is read from the log, so that a message that was
    deleted or has expired is never shown, whatever the store still holds. Every method names the owner, and must keep
    owners apart. Adding a position twice is the same as once. Methods raise what they like; it reaches the caller.
    """

    def last_position(self, owner: str, conversation_id: str) -> int | None:
        """The highest position that was added, None without any."""
        ...

    def add(self, owner: str, conversation_id: str, items: Sequence[VectorItem]) -> None:
        """Store items, all or none; positions ascend."""
        ...

    def search(
        self, owner: str, conversation_id: str | None, vector: Sequence[float], top_k: int, threshold: float
    ) -> Sequence[VectorHit]:
        """The best `top_k` of at least this score, best first: of the conversation, or with None of all the owner's."""
        ...

    def remove(self, owner: str, conversation_id: str, positions: Collection[int] | None = None) -> None:
        """Forget these positions, or with None the whole conversation. What isn't there is passed over."""
        ...


class AsyncVectorStore(Protocol):
    """VectorStore, awaited: for AsyncVectorMemory, which takes both."""

    async def last_position(self, owner: str, conversation_id: str) -> int | None: ...

    async def add(self, owner: str, conversation_id: str, items: Sequence[VectorItem]) -> None: ...

    async def search(
        self, owner: str, conversation_id: str | None, vector: Sequence[float], top_k: int, threshold: float
    ) -> Sequence[VectorHit]: ...

    async def remove(self, owner: str, conversation_id: str, positions: Collection[int] | None = None) -> None: ...


METHODS = ("last_position", "add", "search", "remove")


def check_store(store: object) -> None:
    """A store has its four methods."""
    missing = [name for name in METHODS if not callable(getattr(store, name, None))]
    if missing or isinstance(store, type):
        raise TypeError(f"store: expected an object with {', '.join(METHODS)}, got {type(store).__name__}")
