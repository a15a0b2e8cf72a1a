"""Compares what was applied with what there is, and says what to do about it. Pure: reads no file and no database."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import msgspec

from chatkeep.migrations.files import SchemaFile
from chatkeep.migrations.target import Applied


class State(enum.Enum):
    """What a step is to a database."""

    APPLIED = "applied"
    BY_HAND = "applied by hand"
    """Its history row has no checksum: the file ran outside of `chatkeep migrate`."""
    PENDING = "pending"
    FAILED = "failed"
    """It began and did not end."""
    EDITED = "edited"
    """The file is not the one that was applied."""
    SKIPPED = "skipped"
    """Not applied, although a later one is."""
    NEWER = "newer than this package"
    """Applied, but this package has no such file."""


DONE = (State.APPLIED, State.BY_HAND)
BLOCKING = (State.FAILED, State.EDITED, State.SKIPPED, State.NEWER)
"""What no migration may run over, the most important first."""


class Step(msgspec.Struct, frozen=True):
    """One version, from the files, the history or both."""

    version: int
    description: str
    state: State
    file: SchemaFile | None = None
    applied: Applied | None = None

    @property
    def name(self) -> str:
        """The file's name, or the version where there is no file."""
        return self.file.name if self.file else f"V{self.version:04d} ({self.description})"


class Plan(msgspec.Struct, frozen=True):
    """The steps in order and what follows from them."""

    steps: tuple[Step, ...]

    @property
    def version(self) -> int:
        """The version the database is at; 0 where nothing was applied."""
        return max((step.version for step in self.steps if step.applied), default=0)

    @property
    def pending(self) -> list[SchemaFile]:
        """What `migrate` would run, in order."""
        return [step.file for step in self.steps if step.state is State.PENDING and step.file]

    def of(self, states: Iterable[State]) -> list[Step]:
        """The steps in one of these states, in the order of the states."""
        return [step for state in states for step in self.steps if step.state is state]


class Words(msgspec.Struct, frozen=True):
    """What the texts say about the database."""

    place: str
    migrate: str
    """The command line that migrates this database."""
    repair: str
    account: str
    """What to say about the account that runs it, with a space before; may be empty."""
    rerunnable: bool = False
    """Whether a file that died can run again from its start."""


def make_plan(files: Sequence[SchemaFile], history: Sequence[Applied] | None) -> Plan:
    """The state of every step. `history` None: there is no history table."""
    by_version = {file.version: file for file in files}
    applied = {row.version: row for row in history or ()}
    last = max(applied, default=0)
    steps = []
    for version in sorted(by_version.keys() | applied.keys()):
        file, row = by_version.get(version), applied.get(version)
        description = row.description if row else file.description if file else ""
        state = _state(file, row, version < last)
        if history is not None and not applied and version == files[0].version:
            # The first file makes the history table and ends by filling in its row: it died in between.
            state = State.FAILED
        steps.append(Step(version, description, state, file, row))
    return Plan(tuple(steps))


def _state(file: SchemaFile | None, row: Applied | None, later_one_applied: bool) -> State:
    if row is None:
        return State.SKIPPED if later_one_applied else State.PENDING
    if not row.success:
        return State.FAILED
    if file is None:
        return State.NEWER
    if row.checksum is None:
        return State.BY_HAND
    return State.APPLIED if row.checksum == file.checksum else State.EDITED


def obstacle(plan: Plan, words: Words) -> str | None:
    """Why nothing may run on this database until a person has looked, or None."""
    blocking = plan.of(BLOCKING)
    if not blocking:
        return None
    first = blocking[0]
    text = {
        State.FAILED: _failed,
        State.EDITED: _edited,
        State.SKIPPED: _skipped,
        State.NEWER: _newer,
    }[first.state](first, plan, words)
    others = [f"{step.name}: {step.state.value}" for step in blocking[1:] if step.state is not first.state]
    return f"{words.place}: {text}" + (f" Besides: {', '.join(others)}." if others else "")


def shortfall(plan: Plan, words: Words) -> str | None:
    """What is still to be applied, with the command that does it, or None."""
    if not plan.pending:
        return None
    wanted = plan.pending[-1].version
    has = f"the tables are at version {plan.version}" if plan.version else "there are no chatkeep tables"
    names = ", ".join(file.name for file in plan.pending)
    return (
        f"{words.place}: {has}, and this package works with version {wanted} (to apply: {names}). Run "
        f"`{words.migrate}`{words.account}, or open with "
        f'schema="migrate".'
    )


def incomplete(tables: Sequence[str], words: Words) -> str:
    """What to say where a file was applied by hand and tables of it are missing."""
    return (
        f"{words.place}: the schema files were applied by hand, but not all of them arrived: there is no "
        f"{', '.join(tables)}. Run the missing statements of the file by hand, or, while there is no data yet, drop "
        f"the chatkeep tables and run `{words.migrate}`."
    )


def _failed(step: Step, plan: Plan, words: Words) -> str:
    began = f", on {_day(step.applied)}," if step.applied else ""
    if step.applied is None:
        return (
            f"chatkeep_schema_history is there and empty, so {step.name} began{began} and did not end; it was applied "
            f"by hand, or by a tool, outside of a transaction. Run the rest of the file by hand, or, while there is "
            f"no data yet, drop the tables it made and run `{words.migrate}`."
        )
    if words.rerunnable:
        return (
            f"step {step.name} began{began} and did not end. Its statements can run again: run `{words.repair}`, so "
            f"that the next `{words.migrate}` runs the file from its start; or run the whole file by hand."
        )
    return (
        f"step {step.name} began{began} and did not end. Look at which of its statements took effect; then either "
        f"undo them and run `{words.repair}`, so that the next `{words.migrate}` runs the file again, or run the rest "
        f"of the file by hand and say so with `{words.repair} --completed`."
    )


def _edited(step: Step, plan: Plan, words: Words) -> str:
    assert step.file is not None
    assert step.applied is not None
    return (
        f"{step.name} is not the file that was applied on {_day(step.applied)}: its SHA-256 is "
        f"{step.file.checksum[:12]}…, the applied one had {str(step.applied.checksum)[:12]}…. Restore the file (from "
        f"version control, or by reinstalling chatkeep); a change of the tables goes into a new file with the next "
        f"version, never into one that was applied."
    )


def _skipped(step: Step, plan: Plan, words: Words) -> str:
    return (
        f"{step.name} was not applied, although version {plan.version} was. Steps go in order: look at what was run "
        f"by hand, apply {step.name} by hand too, and check again."
    )


def _newer(step: Step, plan: Plan, words: Words) -> str:
    known = max((other.version for other in plan.steps if other.file), default=0)
    return (
        f"the tables are at version {plan.version}, and this package knows only up to {known}. Upgrade the package "
        f"chatkeep in this application; tables are never taken back to an older version."
    )


def _day(applied: Applied) -> str:
    return f"{applied.applied_at:%Y-%m-%d %H:%M}"
