"""What all connections of this process to one SQLite file share: the writers' queue, and care at a fork. No SQL.

Writers of one process queue up here instead of in SQLite's busy handler, which sleeps and polls: with 8 threads four
times the appends, and a tenth of the longest wait.

SQLite must not be open at a fork. Its lock table is a part of the process: the child would inherit it, believe that it
holds locks on the file which the operating system did not hand down, and lose what it writes when the parent closes
the file (https://www.sqlite.org/howtocorrupt.html, section 2.6). So before a fork the operations under way are waited
for and all idle connections are closed; parent and child open new ones.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chatkeep.errors import StorageError

if TYPE_CHECKING:
    from chatkeep.backends.relational.session import Session

FORK_SECONDS = 5.0
"""How long a fork waits for operations under way. After it, the child can't use the repositories it inherited."""


class FileGate:
    """One database file. Operations pass through it; weak references, so that an interrupt can't leave one inside."""

    def __init__(self) -> None:
        self._owners: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()
        self._unsafe = False
        self._renew()

    def _renew(self) -> None:
        self._turn = threading.Condition()
        self._inside: weakref.WeakSet[object] = weakref.WeakSet()
        self._forking = False
        self._writers = threading.Lock()
        self._writing: weakref.ref[Session] | None = None

    def add(self, owner: Any, close_idle: Callable[[Any], None]) -> None:
        """Before a fork, `close_idle(owner)` closes the idle connections; the owner is held weakly."""
        self._owners[owner] = close_idle

    def enter(self, operation: object) -> None:
        """An operation begins to use the file. Waits while a fork is under way."""
        with self._turn:
            if self._unsafe:
                raise StorageError(
                    "sqlite: this process was forked while its parent used the database; open a new repository",
                    backend="sqlite",
                )
            while self._forking:
                self._turn.wait()
            self._inside.add(operation)

    def leave(self, operation: object) -> None:
        """The operation is done with the file."""
        with self._turn:
            self._inside.discard(operation)
            if self._forking:
                self._turn.notify_all()

    def take_turn(self, session: Session, seconds: float) -> threading.Lock | None:
        """Queue up to write; the lock to release after it. None after `seconds`: SQLite's own lock then decides."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            writers = self._writers
            if writers.acquire(timeout=min(left, 0.25)):
                self._writing = weakref.ref(session)
                return writers
            holder = None if self._writing is None else self._writing()
            if (holder is None or not holder.is_open) and writers is self._writers:
                # Lost: an exception out of a signal handler came between taking the turn and noting it.
                self._writers = threading.Lock()
        return None

    def before_fork(self) -> None:
        """Close the file in this process."""
        deadline = time.monotonic() + FORK_SECONDS
        with self._turn:
            self._forking = True
            while len(self._inside) and time.monotonic() < deadline:
                self._turn.wait(0.05)  # an operation that was collected by the garbage collector tells nobody
        if not len(self._inside):
            for owner, close_idle in list(self._owners.items()):
                close_idle(owner)

    def after_fork_in_parent(self) -> None:
        with self._turn:
            self._forking = False
            self._turn.notify_all()

    def after_fork_in_child(self) -> None:
        self._unsafe = self._unsafe or bool(len(self._inside))
        self._renew()


_gates: weakref.WeakValueDictionary[str, FileGate] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def gate_of(path: str) -> FileGate:
    """The gate of a database file, by whatever name it is opened."""
    with _lock:
        key = os.path.realpath(path)
        gate = _gates.get(key)
        if gate is None or gate._unsafe:
            gate = _gates[key] = FileGate()
        return gate


def _before_fork() -> None:
    _lock.acquire()
    for gate in list(_gates.values()):
        gate.before_fork()


def _after_in_parent() -> None:
    for gate in list(_gates.values()):
        gate.after_fork_in_parent()
    _lock.release()


def _after_in_child() -> None:
    for gate in list(_gates.values()):
        gate.after_fork_in_child()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
