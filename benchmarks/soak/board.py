"""What all workers of a run know of each other's calls, in memory that processes share. Judges nothing.

Every call on a shared conversation is noted before it begins and after it ended. A reader looks at the notes before its
read and after it: what was acknowledged before must be there, what was not begun after can't be there.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import multiprocessing
import time
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.soak.plan import LOG_MESSAGES
from chatkeep import ConcurrentChangeError, Outcome, StorageError

MOST_WORKERS = 64
_CALLS = LOG_MESSAGES + MOST_WORKERS
"""Room for the calls of one worker in one epoch: all calls, and those under way when the limit is reached."""
_CLAIMS = 256
"""Expected versions that were won lately. Two winners come within a few calls of each other."""


class Status(enum.IntEnum):
    """What is known of one call."""

    NEVER = 0
    RUNNING = 1
    KEPT = 2
    REFUSED = 3
    """It raised, and nothing was written."""
    UNKNOWN = 4
    """It raised, and may have been written, then or later."""


class Phase(enum.IntEnum):
    """A shared conversation's life; after GOING comes OPEN again, in the next epoch."""

    OPEN = 0
    CLOSING = 1
    """Full: nobody begins anything new, those who are inside finish."""
    ALONE = 2
    """One worker has it to itself."""
    GOING = 3
    """Verified; what is left is its deletion."""


class _Hot(ctypes.Structure):
    _fields_ = (
        ("phase", ctypes.c_int64),
        ("epoch", ctypes.c_int64),
        ("inside", ctypes.c_int64),
        ("top", ctypes.c_int64),
        ("messages", ctypes.c_int64 * 5),  # by status
        ("deletes_begun", ctypes.c_int64),
        ("deletes_ended", ctypes.c_int64),
        ("claimed", ctypes.c_int64),
        ("claims", ctypes.c_int64 * _CLAIMS),
        ("calls", ctypes.c_int64 * MOST_WORKERS),
        ("kept", ctypes.c_int64 * MOST_WORKERS),
        ("versions", ctypes.c_int64 * MOST_WORKERS),
        ("floor", ctypes.c_int64 * MOST_WORKERS),
        ("after_deletes", ctypes.c_int64 * MOST_WORKERS),
        ("status", ctypes.c_uint8 * (MOST_WORKERS * _CALLS)),
    )


class _Run(ctypes.Structure):
    # One place more than workers: for whoever verifies at the end.
    _fields_ = (
        ("stopped", ctypes.c_int64),
        ("ready", ctypes.c_int64),
        ("until", ctypes.c_double),
        ("operations", ctypes.c_int64 * (MOST_WORKERS + 1)),
        ("errors", ctypes.c_int64 * (MOST_WORKERS + 1)),
        ("since", ctypes.c_double * (MOST_WORKERS + 1)),
    )


class Known(NamedTuple):
    """What is known of a shared conversation at one moment; lists are by worker."""

    epoch: int
    top: int
    """The highest version that any write returned."""
    kept_messages: int
    """Acknowledged."""
    possible_messages: int
    """Acknowledged, under way, or of unknown outcome."""
    kept: list[int]
    """The last acknowledged call."""
    versions: list[int]
    """What that call returned."""
    floor: list[int]
    """An acknowledged deletion has removed all calls up to this one."""
    deletes_begun: int
    undeleted_since: list[int]
    """How many deletions had ended when the last acknowledged call began; -1 where a later call has begun."""


class Call:
    """A write under way. Whoever makes it sets `version` when it is acknowledged."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.version: int | None = None
        self.doubtful = False
        """A first try ended in an unknown outcome, so that a refusal of the second is no answer."""


class Board:
    """Shared by threads as it is, and by processes that get it when they are started."""

    def __init__(self, workers: int, conversations: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.workers = workers
        self.run = context.RawValue(_Run)
        self._hot = context.RawArray(_Hot, conversations)
        self._lock = context.Lock()

    # --- the run ---

    def wait_for_start(self) -> None:
        """Tells that another process's workers are ready, and waits for the others'."""
        with self._lock:
            self.run.ready += 1
        while not self.run.until and not self.run.stopped:
            time.sleep(0.005)

    def goes_on(self) -> bool:
        return not self.run.stopped and time.monotonic() < self.run.until

    def stop(self) -> None:
        """Every worker ends what it does now and begins nothing new."""
        self.run.stopped = 1

    def under_way(self) -> dict[int, float]:
        """The workers that are in a call, and for how many seconds."""
        now = time.monotonic()
        return {worker: now - since for worker, since in enumerate(self.run.since) if since}

    # --- the life of a shared conversation ---

    @contextlib.contextmanager
    def visit(self, index: int) -> Iterator[int | None]:
        """Within the context, the conversation stays in the epoch given; None where it is closed."""
        hot = self._hot[index]
        with self._lock:
            is_open = hot.phase == Phase.OPEN
            hot.inside += is_open
            epoch: int = hot.epoch
        try:
            yield epoch if is_open else None
        finally:
            with self._lock:
                hot.inside -= is_open

    def take(self, index: int) -> Phase | None:
        """Takes over a full conversation that all have left: the phase it was in, or None where it can't be had."""
        hot = self._hot[index]
        with self._lock:
            phase = Phase(hot.phase)
            if hot.inside or phase not in (Phase.CLOSING, Phase.GOING):
                return None
            hot.phase = Phase.ALONE
            return phase

    def give_back(self, index: int, phase: Phase) -> None:
        with self._lock:
            self._hot[index].phase = phase

    def begin_anew(self, index: int) -> None:
        """The conversation was deleted. Versions are never used again, so that `top` stays."""
        hot = self._hot[index]
        with self._lock:
            epoch, top = hot.epoch, hot.top
            ctypes.memset(ctypes.addressof(hot), 0, ctypes.sizeof(hot))
            hot.epoch, hot.top = epoch + 1, top

    # --- calls ---

    @contextlib.contextmanager
    def call(self, index: int, worker: int, messages: int) -> Iterator[Call]:
        """Notes a write of so many messages, and how it ended; its errors go on to the caller."""
        call = Call(self._begin(index, worker, messages))
        status = Status.UNKNOWN
        try:
            yield call
            status = Status.KEPT
        except ConcurrentChangeError:
            status = Status.REFUSED
            raise
        except StorageError as error:
            if error.outcome is Outcome.NOT_APPLIED and not call.doubtful:
                status = Status.REFUSED
            raise
        finally:
            self._end(index, worker, messages, call, status)

    def _begin(self, index: int, worker: int, messages: int) -> int:
        hot = self._hot[index]
        with self._lock:
            number: int = hot.calls[worker] + 1
            hot.calls[worker] = number
            hot.status[worker * _CALLS + number] = Status.RUNNING
            hot.messages[Status.RUNNING] += messages
            hot.after_deletes[worker] = hot.deletes_ended
            if hot.phase == Phase.OPEN and (
                sum(hot.messages) >= LOG_MESSAGES or sum(hot.calls[: self.workers]) >= LOG_MESSAGES
            ):
                hot.phase = Phase.CLOSING
            return number

    def _end(self, index: int, worker: int, messages: int, call: Call, status: Status) -> None:
        hot = self._hot[index]
        with self._lock:
            hot.messages[Status.RUNNING] -= messages
            hot.messages[status] += messages
            hot.status[worker * _CALLS + call.number] = status
            if status is Status.KEPT:
                hot.kept[worker] = call.number
                hot.versions[worker] = call.version
                hot.top = max(hot.top, call.version or 0)

    def claim(self, index: int, expected_version: int) -> bool:
        """Notes the winner of an expected version; False where there was one before."""
        hot = self._hot[index]
        with self._lock:
            # From 1, since 0 (the conversation must not exist) is a version too, and an empty place is 0.
            if expected_version + 1 in hot.claims[:_CLAIMS]:
                return False
            hot.claims[hot.claimed % _CLAIMS] = expected_version + 1
            hot.claimed += 1
            return True

    @contextlib.contextmanager
    def deletion(self, index: int, floor: list[int] | None = None) -> Iterator[None]:
        """Notes the deletion of all calls up to `floor`, by worker; of all that are acknowledged now, if None."""
        hot = self._hot[index]
        with self._lock:
            hot.deletes_begun += 1
            gone = hot.kept[: self.workers] if floor is None else floor
        try:
            yield
        except StorageError as error:
            if error.outcome is Outcome.NOT_APPLIED:
                with self._lock:
                    hot.deletes_ended += 1
            raise  # with an unknown outcome it may happen at any time, so it never ends
        with self._lock:
            hot.deletes_ended += 1
            hot.floor[: self.workers] = list(map(max, gone, hot.floor[: self.workers]))

    # --- looking ---

    def look(self, index: int) -> Known:
        hot = self._hot[index]
        number = self.workers
        with self._lock:
            calls, kept = hot.calls[:number], hot.kept[:number]
            since = zip(calls, kept, hot.after_deletes[:number], strict=True)
            return Known(
                epoch=hot.epoch,
                top=hot.top,
                kept_messages=hot.messages[Status.KEPT],
                possible_messages=sum(hot.messages) - hot.messages[Status.REFUSED],
                kept=kept,
                versions=hot.versions[:number],
                floor=hot.floor[:number],
                deletes_begun=hot.deletes_begun,
                undeleted_since=[ended if last == acknowledged else -1 for last, acknowledged, ended in since],
            )

    def status(self, index: int, worker: int, call: int) -> Status:
        """Of a call in this epoch; NEVER for a number that was never given."""
        if not (0 <= worker < self.workers and 0 < call < _CALLS):
            return Status.NEVER
        return Status(self._hot[index].status[worker * _CALLS + call])
