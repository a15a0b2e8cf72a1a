"""Migrates, validates and reports on one target. All decisions are plan.py's, all statements the target's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from chatkeep.errors import (
    ContentionError,
    Outcome,
    SchemaError,
    StorageConnectionError,
    StorageError,
    StorageTimeoutError,
)
from chatkeep.migrations.files import SchemaFile, schema_files, tables_after
from chatkeep.migrations.plan import DONE, Plan, State, Step, Words, incomplete, make_plan, obstacle, shortfall
from chatkeep.migrations.target import Target

LOCK_SECONDS = 60.0
"""How long a migration waits for another one."""
Progress = Callable[[str], None]


class MigrationReport(msgspec.Struct, frozen=True):
    """What a migration did."""

    backend: str
    place: str
    version_before: int
    version: int
    applied: tuple[str, ...]
    """The names of the files that this call applied; another process may have applied the rest."""


def migrate(
    target: Target,
    files: Sequence[SchemaFile] | None = None,
    *,
    lock_timeout: float = LOCK_SECONDS,
    progress: Progress | None = None,
) -> MigrationReport:
    """Bring a database to the latest version, one step at a time.

    Safe to repeat, to interrupt between any two statements, and to run from many processes at once: one of them
    applies a step, the others wait for up to `lock_timeout` seconds and find it done. Takes no lock where there is
    nothing to do. Raises SchemaError where a person must look first and where a step fails, StorageTimeoutError
    where others hold the lock for too long.
    """
    files = _files(target, files)
    say = progress or _silent
    plan = _read(target, files)
    before = plan.version
    _refuse_obstacles(target, plan)
    applied: list[str] = []
    if plan.pending:
        say(f"{target.place}: at version {before}, {len(plan.pending)} to apply")
        with target.lock(lock_timeout):
            while True:
                # Read anew before each step: others may have been faster until the lock was ours.
                plan = _read(target, files)
                _refuse_obstacles(target, plan)
                if not plan.pending:
                    break
                _apply(target, plan.pending[0], say)
                applied.append(plan.pending[0].name)
    _refuse_missing_tables(target, plan)
    say(f"{target.place}: at version {plan.version}" + ("" if applied else ", nothing to do"))
    return MigrationReport(target.backend, target.place, before, plan.version, tuple(applied))


def validate(target: Target, files: Sequence[SchemaFile] | None = None) -> None:
    """Check that a database has exactly the version of this package; SchemaError says what to do otherwise.

    Changes nothing, and needs no more than SELECT on chatkeep_schema_history.
    """
    plan = _read(target, _files(target, files))
    _refuse_obstacles(target, plan)
    problem = shortfall(plan, _words(target))
    if problem is not None:
        hint = None if plan.version else target.hint()
        raise SchemaError(f"{problem} {hint}" if hint else problem, backend=target.backend)
    _refuse_missing_tables(target, plan)


def status(target: Target, files: Sequence[SchemaFile] | None = None) -> list[Step]:
    """Every step with its state, in order. Changes nothing, and raises nothing about the steps."""
    return list(_read(target, _files(target, files)).steps)


def pending_sql(source: Target | str, files: Sequence[SchemaFile] | None = None) -> str:
    """The text of what `migrate` would run on a target, or of all files of a backend given by name.

    Run by hand, it leaves a history without checksums, which counts as applied by hand. It stops where a person
    must look first, like `migrate`.
    """
    before = after = ""
    if isinstance(source, str):
        pending = list(files or schema_files(source))
    else:
        plan = _read(source, _files(source, files))
        _refuse_obstacles(source, plan)
        pending = plan.pending
        if source.transactional_ddl:
            begin, commit = source.transaction
            before, after = f"{begin}\n\n", f"\n{commit}\n"
    return "\n".join(f"-- {file.name}\n{before}{file.script.rstrip()}\n{after}" for file in pending)


def repair(
    target: Target,
    files: Sequence[SchemaFile] | None = None,
    *,
    completed: bool = False,
    lock_timeout: float = LOCK_SECONDS,
) -> list[str]:
    """Settle the steps that began and did not end, after a person has looked at what they left.

    By default they are forgotten, and the next `migrate` runs them again from their first statement: what they left
    must have been undone. `completed`: the rest was run by hand, and they count as applied by hand. Returns the
    names; an engine that rolls DDL back has none.
    """
    files = _files(target, files)
    if not _failed(_read(target, files)):
        return []
    with target.lock(lock_timeout):
        failed = _failed(_read(target, files))
        for step in failed:
            settle = target.complete if completed else target.forget
            settle(step.version)
    return [step.name for step in failed]


def _failed(plan: Plan) -> list[Step]:
    return [step for step in plan.of([State.FAILED]) if step.applied]


def _files(target: Target, files: Sequence[SchemaFile] | None) -> list[SchemaFile]:
    return schema_files(target.backend, target.directory) if files is None else list(files)


def _read(target: Target, files: Sequence[SchemaFile]) -> Plan:
    problem = target.check()
    if problem is not None:
        raise SchemaError(f"{target.place}: {problem}", backend=target.backend)
    return make_plan(files, target.history())


def _words(target: Target) -> Words:
    account = f" {target.account}" if target.account else ""
    return Words(target.place, target.command("migrate"), target.command("repair"), account, target.rerunnable)


def _refuse_obstacles(target: Target, plan: Plan) -> None:
    problem = obstacle(plan, _words(target))
    if problem is not None:
        raise SchemaError(problem, backend=target.backend)


def _refuse_missing_tables(target: Target, plan: Plan) -> None:
    """psql goes on after an error unless told otherwise, and then records a file of which half is missing."""
    if not plan.of([State.BY_HAND]):
        return
    missing = target.missing(tables_after([step.file for step in plan.of(DONE) if step.file]))
    if missing:
        raise SchemaError(incomplete(missing, _words(target)), backend=target.backend)


def _apply(target: Target, file: SchemaFile, say: Progress) -> None:
    say(f"{file.name} …")
    began = time.monotonic()
    try:
        target.apply(file.version, file.description, file.checksum, file.script)
    except StorageError as exc:
        raise _step_error(target, file, exc) from exc
    say(f"{file.name} applied in {time.monotonic() - began:.1f} s")


def _step_error(target: Target, file: SchemaFile, error: StorageError) -> StorageError:
    """The same error with the step's name and what is left of it."""
    text = f"{target.place}: step {file.name} failed: {error}. "
    if error.outcome is Outcome.UNKNOWN:
        text += f"Whether it took effect is not known; look with `{target.command('status')}`."
    elif target.transactional_ddl:
        text += (
            f"It was rolled back and left nothing behind; when the cause is gone, run `{target.command('migrate')}`."
        )
    else:
        text += (
            f"What it did before that has stayed. When the cause is gone, run `{target.command('migrate')}`, which "
            f"goes on, or says what to look at first."
        )
    # A lost connection and a lock that others hold are worth another try, which SchemaError would deny.
    known = (StorageConnectionError, StorageTimeoutError, ContentionError)
    kind = type(error) if isinstance(error, known) else SchemaError
    return kind(text, backend=target.backend, outcome=error.outcome)


def _silent(text: str) -> None:
    pass
