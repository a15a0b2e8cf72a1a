"""Several migrators at once, and migrators that die: what counts is what other processes find afterwards."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chatkeep.backends.relational.database import Session
from chatkeep.errors import SchemaError
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, repair, status, validate
from chatkeep.migrations.target import Target
from tests.migrations.places import Place, Steps, commits, rolls_back, start_migrator

PROCESSES = 5


@contextlib.contextmanager
def ended(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_five_migrators_at_once_apply_each_step_once(place: Place, steps: Steps) -> None:
    for number in range(3):
        steps.add(f"more {number}", f"CREATE TABLE more{number} (x integer);")
    with contextlib.ExitStack() as stack:
        begin = time.time() + 1.5
        processes = [stack.enter_context(ended(start_migrator(place, steps, begin))) for _ in range(PROCESSES)]
        outputs = [process.communicate(timeout=60) for process in processes]
    assert [(process.returncode, err) for process, (_, err) in zip(processes, outputs, strict=True)] == [
        (0, "")
    ] * PROCESSES
    applied = [out.rpartition("applied: ")[2].strip() for out, _ in outputs]
    names = [name for text in applied if text for name in text.split(",")]
    assert sorted(names) == [file.name for file in steps.files()]
    with place.target() as target:
        validate(target, steps.files())


def test_the_others_wait_while_one_migrates(place: Place, steps: Steps) -> None:
    with contextlib.ExitStack() as stack, place.target() as target:
        with target.lock(5):
            processes = [stack.enter_context(ended(start_migrator(place, steps))) for _ in range(2)]
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)
            assert [process.poll() for process in processes] == [None, None]
            assert place.backend == "sqlite" or place.schema() == {}
        results = [process.communicate(timeout=60)[0].rpartition("applied: ")[2].strip() for process in processes]
    assert sorted(results) == sorted(["", ",".join(file.name for file in steps.files())])


@rolls_back
@pytest.mark.parametrize("first", [True, False], ids=["in the first step", "in a later step"])
def test_a_killed_migrator_is_taken_over_from(place: Place, steps: Steps, first: bool) -> None:
    slow_step, done = kill_in_a_slow_step(place, steps, first=first)
    with place.target() as target:
        expected = [State.APPLIED] * done + [State.PENDING]
        assert [step.state for step in status(target, steps.files())] == expected
        assert not [name for name in place.schema() if "third" in name or "slow" in name]
        assert done or place.schema() == {}
        # It never took effect, so it may be changed.
        slow_step.write_text(slow_step.read_text().replace(place.slow_statement, ""))
        began = time.monotonic()
        report = migrate(target, steps.files(), lock_timeout=20)
        validate(target, steps.files())
    assert report.applied == (slow_step.name,)
    assert time.monotonic() - began < 15


@commits
@pytest.mark.parametrize("completed", [False, True], ids=["and runs again", "and is ended by hand"])
@pytest.mark.parametrize("first", [True, False], ids=["in the first step", "in a later step"])
def test_a_killed_migrator_leaves_a_step_that_repair_settles(
    place: Place, steps: Steps, first: bool, completed: bool
) -> None:
    slow_step, done = kill_in_a_slow_step(place, steps, first=first)
    with place.target() as target:
        # As long as the server is at the killed one's statement, the lock is held, and the step isn't taken for dead.
        assert status(target, steps.files())[-1].state is State.PENDING
        began = time.monotonic()
        with pytest.raises(SchemaError, match=f"step {slow_step.name} began, on 20"):
            migrate(target, steps.files(), lock_timeout=40)
        assert time.monotonic() - began < 35
        assert [step.state for step in status(target, steps.files())] == [State.APPLIED] * done + [State.FAILED]
        quick = slow_step.read_text().replace(place.slow_statement, "")
        if completed:
            # The whole file, which can run again, and ends by settling its own row.
            place.execute(quick)
            assert repair(target, steps.files(), completed=True) == []
            assert migrate(target, steps.files()).applied == ()
        else:
            slow_step.write_text(quick)
            assert repair(target, steps.files()) == [slow_step.name]
            assert migrate(target, steps.files()).applied == (slow_step.name,)
        validate(target, steps.files())


def kill_in_a_slow_step(place: Place, steps: Steps, *, first: bool) -> tuple[Path, int]:
    """The path of a step in which a migrator was killed, and how many are applied before it."""
    if first:
        slow_step = steps.directory / steps.files()[0].name
        script, mark, row = slow_step.read_text().partition("INSERT INTO chatkeep_schema_history")
        slow_step.write_text(f"{script}{place.slow_statement}\n{mark}{row}")
    else:
        steps.add("second", "CREATE TABLE second (x integer);")
        slow_step = steps.add("slow", f"CREATE TABLE IF NOT EXISTS third (x integer);\n{place.slow_statement}")
    done = 0 if first else len(steps.files()) - 1
    with ended(start_migrator(place, steps)) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"{slow_step.name} …"):
                break
        time.sleep(0.5)  # into the slow statement
        assert process.poll() is None
        process.kill()
        assert process.wait(timeout=10) == -9
    return slow_step, done


class Died(BaseException):
    """Stands for the end of the process: nothing runs after it."""


@contextlib.contextmanager
def dying_after(statements: int) -> Iterator[None]:
    """The process sends so many statements and dies before the next one."""
    real = Session._execute
    left, dead = statements, False

    def execute(self: Session, statement: str, parameters: Any = None) -> None:
        nonlocal left, dead
        if dead or left == 0:
            dead = True
            raise Died
        left -= 1
        real(self, statement, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_execute", execute)
        yield


def lives(place: Place, steps: Steps) -> Iterator[Target]:
    """Migrates an empty database and dies before the first statement, the second, …; the target of each next one."""
    for lifetime in range(200):
        place.execute(EMPTY)
        with place.target() as target, dying_after(lifetime):
            try:
                migrate(target, steps.files())
            except Died:
                pass
            else:
                return
        # An invalidated connection is closed, as the end of a process would close it.
        with place.target() as target:
            yield target
    pytest.fail("200 statements were not enough")


@rolls_back
def test_wherever_a_migrator_dies_the_next_one_goes_on(place: Place, steps: Steps) -> None:
    steps.add("second", "CREATE TABLE second (x integer);\nINSERT INTO second VALUES (1);")
    steps.add("third", "CREATE TABLE third (x integer);")
    seen = set()
    for target in lives(place, steps):
        states = [step.state for step in status(target, steps.files())]
        assert set(states) <= {State.APPLIED, State.PENDING}
        seen.add(states.count(State.APPLIED))
        migrate(target, steps.files(), lock_timeout=5)
        validate(target, steps.files())
        assert place.rows("SELECT count(*) FROM second") == [(1,)]
    assert seen == set(range(len(steps.files()) + 1))


@commits
@pytest.mark.parametrize("completed", [False, True], ids=["and runs again", "and is ended by hand"])
def test_wherever_a_migrator_dies_repair_settles_the_step(place: Place, steps: Steps, completed: bool) -> None:
    # Of the first file only what it begins and ends with, since each CREATE TABLE goes to the disk.
    first = steps.directory / steps.files()[0].name
    script = first.read_text().partition("CREATE TABLE IF NOT EXISTS chat_conversation")[0]
    first.write_text(script + place.history_row(1, "chat memory"))
    steps.add("second", "CREATE TABLE IF NOT EXISTS second (x integer PRIMARY KEY);\nREPLACE INTO second VALUES (1);")
    seen = set()
    for target in lives(place, steps):
        states = [step.state for step in status(target, steps.files())]
        done = states.count(State.APPLIED)
        failed = State.FAILED in states
        seen.add((done, failed))
        assert states == [State.APPLIED] * done + [State.FAILED] * failed + [State.PENDING] * (
            len(states) - done - failed
        )
        if failed:
            for call in (validate, migrate):
                with pytest.raises(SchemaError, match=r"began, on 20.*and did not end"):
                    call(target, steps.files())
            step = steps.files()[done]
            if completed:
                # The rest of it; that it settles its own row already is for the test above.
                place.execute(step.script.partition("INSERT INTO chatkeep_schema_history")[0])
            assert repair(target, steps.files(), completed=completed) == [step.name]
            assert repair(target, steps.files(), completed=completed) == []
        migrate(target, steps.files(), lock_timeout=5)
        validate(target, steps.files())
        assert place.rows("SELECT count(*) FROM second") == [(1,)]
    everything = len(steps.files())
    assert seen == {(done, failed) for done in range(everything) for failed in (False, True)} | {(everything, False)}


EMPTY = "".join(
    f"DROP TABLE IF EXISTS {table};"
    for table in ("third", "second", "chat_message", "chat_conversation", "chatkeep_schema_history")
)
