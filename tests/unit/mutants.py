"""The in-process backend, broken on purpose: each mutant breaks one rule, as some product of this kind once did.

A mutant names the tests of the suite that must notice it. Most are subclasses; the others change a function of the
core, where the fault lies above the backends.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from chatkeep.backends.inprocess import plugin
from chatkeep.backends.inprocess.store import InProcessBackend
from chatkeep.storage.backend import Write
from chatkeep.storage.record import MessageRecord

Patch = Callable[[pytest.MonkeyPatch], None]


class Mutant(NamedTuple):
    name: str
    patch: Patch
    tests: tuple[str, ...]
    """`TestClass` or `TestClass::test`: at least one of each must fail."""


MUTANTS: list[Mutant] = []


def caught_by(*tests: str) -> Callable[[Any], Any]:
    """Registers a subclass of the backend, or a function that changes the core."""

    def register(broken: Any) -> Any:
        if isinstance(broken, type):
            MUTANTS.append(Mutant(broken.__name__, lambda p: p.setattr(plugin, "InProcessBackend", broken), tests))
        else:
            MUTANTS.append(Mutant(broken.__name__, broken, tests))
        return broken

    return register


def changed(records: list[MessageRecord], **how: Callable[[MessageRecord], Any]) -> list[MessageRecord]:
    """The records with some fields replaced."""
    return [
        msgspec.structs.replace(record, **{name: change(record) for name, change in how.items()}) for record in records
    ]


class ChangesRecords(InProcessBackend):
    """Damages what is written."""

    def damage(self, records: list[MessageRecord]) -> list[MessageRecord]:
        raise NotImplementedError

    def append(self, write: Write, *, reconcile: bool = False) -> int:
        return super().append(msgspec.structs.replace(write, records=self.damage(write.records)))

    def replace(self, write: Write) -> int:
        return super().replace(msgspec.structs.replace(write, records=self.damage(write.records)))


class ChangesBodies(ChangesRecords):
    """Damages the JSON that is written."""

    def damage(self, records: list[MessageRecord]) -> list[MessageRecord]:
        return changed(records, body=lambda record: None if record.body is None else self.body(record.body))

    def body(self, body: str) -> str:
        raise NotImplementedError


def rules(tests: Sequence[str]) -> set[str]:
    """The classes that some tests belong to."""
    return {test.partition("::")[0] for test in tests}
