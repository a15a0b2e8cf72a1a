"""Judges the directory while it changes: what a worker alone writes to stands there once, as it left it."""

from __future__ import annotations

import itertools
from typing import Literal

from benchmarks.soak.cold import Cold
from benchmarks.soak.violation import Promise, ViolationError
from chatkeep.conversation import Conversation

PAGE = 100


class Directory:
    """Lists all conversations and looks for those of one worker."""

    def __init__(self, cold: Cold) -> None:
        self._cold = cold
        self._timed, self._repository = cold.timed, cold.repository

    async def by_id(self) -> None:
        entries = await self._entries("id")
        self._rising([entry.id for entry in entries])
        self._judge(entries)

    async def by_update(self) -> None:
        self._judge(await self._entries("updated"))

    async def ids(self) -> None:
        found = await self._timed("list ids", self._repository.find_conversation_ids())
        self._rising(found)
        there = set(found)
        for own in self._cold.all():
            may_exist = {content is not None for content in self._cold.possible(own)}
            if (own.name in there) not in may_exist:
                promise = Promise.GONE if own.name in there else Promise.DIRECTORY
                text = f"the ids {'still ' if own.name in there else 'do not '}hold it"
                raise ViolationError(promise, own.name, text)

    async def _entries(self, order: Literal["id", "updated"]) -> list[Conversation]:
        entries: list[Conversation] = []
        cursor: str | None = None
        while True:
            listing = self._repository.list_conversations(limit=PAGE, cursor=cursor, order=order)
            page = await self._timed("list page", listing)
            entries += page.items
            cursor = page.next_cursor
            if cursor is None:
                return entries

    def _judge(self, entries: list[Conversation]) -> None:
        by_name: dict[str, list[Conversation]] = {}
        for entry in entries:
            by_name.setdefault(entry.id, []).append(entry)
        for own in self._cold.all():
            found = by_name.get(own.name, [])
            if len(found) > 1:
                raise ViolationError(Promise.DIRECTORY, own.name, f"it is listed {len(found)} times")
            self._cold.judge_entry(own, found[0] if found else None)

    def _rising(self, ids: list[str]) -> None:
        for before, name in itertools.pairwise(ids):
            if before >= name:
                raise ViolationError(Promise.DIRECTORY, name, f"it is listed behind {before!r}")
