"""What a family of engines fills in so that migrations can run on it. Always synchronous."""

from __future__ import annotations

import abc
import datetime as dt
import shlex
from collections.abc import Collection
from contextlib import AbstractContextManager
from importlib.resources.abc import Traversable

import msgspec


class Applied(msgspec.Struct, frozen=True):
    """One row of chatkeep_schema_history."""

    version: int
    description: str
    checksum: str | None
    """SHA-256 of the file as it was applied; None where it was applied by hand, outside of `chatkeep migrate`."""
    applied_at: dt.datetime
    success: bool
    """False: the step began and did not end, on an engine whose DDL can't be rolled back."""


class Target(abc.ABC):
    """One database to migrate.

    The runner reads `history` without the lock first, so that a database with nothing to do is only read. With work
    to do it takes `lock`, reads `history` again, and calls `apply` step by step, each time after a look at `history`:
    a target may let the lock go between two steps, but never within one.

    Where DDL is transactional, `apply` runs the file and the UPDATE of its checksum in one transaction. Where it is
    not, `apply` leaves a row with success = false before the first statement and turns it to true after the last; a
    file that died is then seen, and `chatkeep repair` calls `forget` or `complete` on the operator's word.
    """

    backend: str
    """Names the folder of schema files."""
    place: str
    """Where that is, for messages: host, database, schema; never a password."""
    url: str
    """As `chatkeep migrate --url` takes it, without a password."""
    transactional_ddl: bool
    """Whether a step that fails leaves nothing behind."""
    transaction: tuple[str, str] = ("BEGIN;", "COMMIT;")
    """How a script begins and ends one, where DDL is transactional."""
    rerunnable: bool = False
    """Whether each shipped file can run again from its start after it died, whatever it had done."""
    directory: Traversable | None = None
    """Where the schema files are; None: those shipped with chatkeep under the backend's name."""

    flags: str = ""
    """Options of the command line for it, each with a space before."""
    account: str = ""
    """What the text that names the command says about the account to use; "" for an engine without accounts."""

    def check(self) -> str | None:
        """Why this engine can't hold the tables at all (its version, its encoding), or None. Needs no rights."""
        return None

    @abc.abstractmethod
    def history(self) -> list[Applied] | None:
        """The applied steps in order, or None where chatkeep_schema_history does not exist. Needs no DDL rights."""

    def hint(self) -> str | None:
        """Where the history was looked for in vain, for the person who knows that it is there."""
        return None

    def missing(self, tables: Collection[str]) -> list[str]:
        """Which of these tables do not exist, sorted. Asked for files that were applied by hand."""
        return []

    @abc.abstractmethod
    def lock(self, seconds: float) -> AbstractContextManager[None]:
        """Hold the one migration lock of this database; StorageTimeoutError if others hold it for `seconds`."""

    @abc.abstractmethod
    def apply(self, version: int, description: str, checksum: str, script: str) -> None:
        """Run one file and set the checksum of its history row. The caller holds the lock.

        A statement that fails: a StorageError that names the line of the file and what the engine said.
        """

    @abc.abstractmethod
    def forget(self, version: int) -> None:
        """Delete the history row of a step that failed, so that it runs again. The caller holds the lock."""

    @abc.abstractmethod
    def complete(self, version: int) -> None:
        """Mark a failed step as applied by hand: success without a checksum. The caller holds the lock."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release what this target opened itself."""

    def command(self, verb: str) -> str:
        """The command line to type for this database."""
        return f"chatkeep {verb}{self.flags} --url {shlex.quote(self.url)}"
