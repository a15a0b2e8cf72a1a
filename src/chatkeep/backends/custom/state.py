"""What a process remembers about one store: locks, versions, positions and times. Touches no store.

Four verbs carry none of these, so they live in the memory of the process, whose other writers are noticed by the
content. Versions and positions come from one row of numbers for the whole process, so that none is used twice. The row
follows the clock, so that the numbers of an earlier process are not met again by accident; a promise it is not.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
import time
import weakref
from collections.abc import Sequence

import msgspec

from chatkeep.storage.codec import canonical
from chatkeep.storage.record import MessageRecord

STRIPES = 64
"""Locks of a parallel store: conversations share one only by chance."""
REMEMBERED = 100_000
"""Conversations whose version is kept; one that falls out gets a new version when it is met again."""

_last_number = 0
_number_lock = threading.Lock()


class Sighting(msgspec.Struct, frozen=True):
    """A conversation as this process saw it last."""

    version: int
    fingerprint: int
    positions: Sequence[int]
    """One for each message; a range until a message is deleted from between."""
    created_at: dt.datetime
    updated_at: dt.datetime


class StoreState:
    """Shared by all repositories of one store in this process."""

    def __init__(self, *, parallel: bool) -> None:
        self.parallel = parallel
        stripes = STRIPES if parallel else 1
        self._mutexes = [threading.Lock() for _ in range(stripes)]
        self._loop_locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[asyncio.Lock]] = (
            weakref.WeakKeyDictionary()
        )
        self._sightings: dict[str, Sighting] = {}
        self._guard = threading.Lock()

    def mutex(self, key: str) -> threading.Lock:
        """The lock of a conversation; of the whole store unless it is parallel."""
        return self._mutexes[hash(key) % len(self._mutexes)]

    def loop_lock(self, key: str) -> asyncio.Lock:
        """The lock that tasks of the running loop take before the mutex, so that none blocks the loop."""
        loop = asyncio.get_running_loop()
        with self._guard:
            locks = self._loop_locks.get(loop)
            if locks is None:
                locks = self._loop_locks[loop] = [asyncio.Lock() for _ in self._mutexes]
        return locks[hash(key) % len(locks)]

    def seen(self, key: str, records: Sequence[MessageRecord]) -> Sighting:
        """The sighting of a conversation that has just been read whole.

        One that this process meets for the first time is dated by its messages.
        """
        fingerprint = _fingerprint(records)
        with self._guard:
            known = self._sightings.pop(key, None)
            now = _now()
            if known is None:
                times = [record.created_at for record in records]
                positions = _positions((), len(records))
                known = Sighting(
                    _next_number(), fingerprint, positions, min(times, default=now), max(times, default=now)
                )
            elif known.fingerprint != fingerprint:
                # Another process, or a write whose reply was lost. Where it was an append the positions stay.
                appended = _fingerprint(records[: len(known.positions)]) == known.fingerprint
                positions = _positions(known.positions if appended else (), len(records))
                known = Sighting(_next_number(), fingerprint, positions, known.created_at, now)
            self._keep(key, known)
            return known

    def wrote(self, key: str, records: Sequence[MessageRecord], kept: Sequence[int] = ()) -> int:
        """Remembers a write of this process and gives its version.

        `kept`: the positions of the messages that were there before and lead the list still.
        """
        fingerprint = _fingerprint(records)
        with self._guard:
            known = self._sightings.pop(key, None)
            now = _now()
            created_at = now if known is None else known.created_at
            positions = _positions(kept, len(records))
            self._keep(key, Sighting(_next_number(), fingerprint, positions, created_at, now))
            return self._sightings[key].version

    def knows(self, key: str) -> bool:
        """Whether there is a sighting."""
        return key in self._sightings

    def forget(self, key: str) -> None:
        """The conversation is gone; its id starts anew, with numbers that were never used."""
        with self._guard:
            self._sightings.pop(key, None)

    def _keep(self, key: str, sighting: Sighting) -> None:
        self._sightings[key] = sighting
        if len(self._sightings) > REMEMBERED:
            del self._sightings[next(iter(self._sightings))]


def _fingerprint(records: Sequence[MessageRecord]) -> int:
    content = []
    for record in records:
        # A store may give the keys of metadata back in another order.
        body = None if record.body is None else canonical(record.body)
        content.append((record.message_id, record.role, record.content, body, record.created_at))
    return hash(tuple(content))


def _positions(kept: Sequence[int], count: int) -> Sequence[int]:
    """So many positions, of which the first are `kept` and the others were never used."""
    more = count - len(kept)
    if not more:
        return kept
    if kept and isinstance(kept, range):
        return range(kept.start, _used(kept.stop + more - 1) + 1)
    start = _next_number()
    fresh = range(start, _used(start + more - 1) + 1)
    return fresh if not kept else [*kept, *fresh]


def _used(number: int) -> int:
    global _last_number
    with _number_lock:
        _last_number = max(_last_number, number)
        return number


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _next_number() -> int:
    global _last_number
    with _number_lock:
        _last_number = max(_last_number + 1, time.time_ns() // 1000)
        return _last_number
