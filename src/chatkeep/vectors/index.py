"""Where vectors lie: in the repository's own tables, or in a store elsewhere. Both as steps, for both forms.

Each is an index of the log: it knows up to which message it has come, and goes on from there. So a crash, a failed
embedding or a write of somebody else's leaves no gap.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from chatkeep.memory.steps import Ask, Steps
from chatkeep.message import Message
from chatkeep.migrations.runner import migrate, validate
from chatkeep.storage.repository import Calls
from chatkeep.storage.runner import Call
from chatkeep.storage.vectors import VectorItem, VectorTables
from chatkeep.vectors.store import VectorHit

ROUNDS = 4
"""How often a store is asked again, after it was told what is gone, before fewer hits than wanted are given."""


class Recalled(msgspec.Struct, frozen=True):
    """A message that was found: as it is stored, with its conversation, its position and its similarity (-1 to 1)."""

    conversation_id: str
    position: int
    message: Message
    score: float


class Placed(msgspec.Struct, frozen=True):
    """A message that waits for its vector."""

    position: int
    message: Message


class Index(abc.ABC):
    """The vectors of one repository handle's owner."""

    def prepare(self) -> Steps[None]:
        """Before the first use."""
        return
        yield

    @abc.abstractmethod
    def pending(self, calls: Calls, conversation_id: str, limit: int) -> Steps[list[Placed]]: ...

    @abc.abstractmethod
    def add(
        self, calls: Calls, conversation_id: str, vectors: Sequence[VectorItem], dimensions: int | None
    ) -> Steps[bool]:
        """Whether something was stored, so that `pending` goes on behind it."""

    @abc.abstractmethod
    def search(
        self, calls: Calls, conversation_id: str | None, vector: Sequence[float], top_k: int, threshold: float
    ) -> Steps[list[Recalled]]: ...

    @abc.abstractmethod
    def delete(self, calls: Calls, conversation_id: str) -> Steps[None]: ...


class TableIndex(Index):
    """In the tables of the repository's database."""

    def __init__(self, tables: VectorTables, in_thread: Callable[[Callable[[], None]], Any]) -> None:
        self._tables = tables
        self._in_thread = in_thread
        self._ready = False

    def prepare(self) -> Steps[None]:
        if not self._ready:
            yield Ask(self._in_thread, self._prepare_schema)
            self._ready = True

    def pending(self, calls: Calls, conversation_id: str, limit: int) -> Steps[list[Placed]]:
        def work(_: bool) -> list[Placed]:
            records = self._tables.pending(calls.owner, conversation_id, limit)
            messages = calls.decode(conversation_id, records)
            return [Placed(record.position, message) for record, message in zip(records, messages, strict=True)]

        found: list[Placed] = yield Call(work, repeatable=True)
        return found

    def add(
        self, calls: Calls, conversation_id: str, vectors: Sequence[VectorItem], dimensions: int | None
    ) -> Steps[bool]:
        stored: bool = yield Call(lambda _: self._tables.add(dimensions, vectors), repeatable=True)
        return stored

    def search(
        self, calls: Calls, conversation_id: str | None, vector: Sequence[float], top_k: int, threshold: float
    ) -> Steps[list[Recalled]]:
        def work(_: bool) -> list[Recalled]:
            found = self._tables.search(calls.owner, conversation_id, vector, top_k, 1 - threshold)
            return [
                Recalled(
                    each.conversation_id,
                    each.record.position,
                    calls.decode(each.conversation_id, [each.record])[0],
                    1 - each.distance,
                )
                for each in found
            ]

        hits: list[Recalled] = yield Call(work, repeatable=True)
        return hits

    def delete(self, calls: Calls, conversation_id: str) -> Steps[None]:
        yield Call(lambda _: self._tables.delete(calls.owner, conversation_id), repeatable=True)

    def _prepare_schema(self) -> None:
        target = self._tables.target()
        if target is None:
            return
        try:
            (migrate if self._tables.migrates else validate)(target)
        finally:
            target.close()


class StoreIndex(Index):
    """In a store elsewhere. What it finds is read from the log, a message at a time; what isn't there is forgotten."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def pending(self, calls: Calls, conversation_id: str, limit: int) -> Steps[list[Placed]]:
        last = yield Ask(self._store.last_position, calls.owner, conversation_id)
        page = yield calls.history(conversation_id, last, None, limit)
        return [Placed(entry.position, entry.message) for entry in page.items]

    def add(
        self, calls: Calls, conversation_id: str, vectors: Sequence[VectorItem], dimensions: int | None
    ) -> Steps[bool]:
        yield Ask(self._store.add, calls.owner, conversation_id, vectors)
        return True

    def search(
        self, calls: Calls, conversation_id: str | None, vector: Sequence[float], top_k: int, threshold: float
    ) -> Steps[list[Recalled]]:
        starts: dict[str, int] = {}
        found: list[Recalled] = []
        for _ in range(ROUNDS):
            search = functools.partial(self._store.search, calls.owner, conversation_id, vector, top_k, threshold)
            hits: Sequence[VectorHit] = yield Ask(search)
            found = []
            gone: dict[str, list[int]] = {}
            for hit in hits:
                name = hit.conversation_id
                if name not in starts:
                    starts[name] = yield _context_start(calls, name)
                page = yield calls.history(name, hit.position - 1, hit.position + 1, 1)
                if not page.items or hit.position <= starts[name]:
                    gone.setdefault(name, []).append(hit.position)
                else:
                    found.append(Recalled(name, hit.position, page.items[0].message, hit.score))
            for name, positions in gone.items():
                yield Ask(self._store.remove, calls.owner, name, positions)
            if not gone:
                break
        return found

    def delete(self, calls: Calls, conversation_id: str) -> Steps[None]:
        yield Ask(self._store.remove, calls.owner, conversation_id, None)


def _context_start(calls: Calls, conversation_id: str) -> Call[int]:
    if not calls.capabilities.context:
        return Call(lambda _: 0, repeatable=True)
    return Call(lambda _: calls.backend.find_context(calls.owner, conversation_id, 1).start, repeatable=True)
