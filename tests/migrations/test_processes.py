"""Several migrators at once, and migrators that die: what counts is what other processes find afterwards."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from chatkeep.backends.relational.database import Session
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, status, validate
from tests.migrations.places import Place, Steps, start_migrator

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


@pytest.mark.parametrize("first", [True, False], ids=["in the first step", "in a later step"])
def test_a_killed_migrator_is_taken_over_from(place: Place, steps: Steps, first: bool) -> None:
    if first:
        slow_step = steps.directory / steps.files()[0].name
        script, mark, row = slow_step.read_text().partition("INSERT INTO chatkeep_schema_history")
        slow_step.write_text(f"{script}{place.slow_statement}\n{mark}{row}")
    else:
        steps.add("second", "CREATE TABLE second (x integer);")
        slow_step = steps.add("slow", f"CREATE TABLE third (x integer);\n{place.slow_statement}")
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


class Died(BaseException):
    """Stands for the end of the process: nothing runs after it."""


def test_wherever_a_migrator_dies_the_next_one_goes_on(
    place: Place, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dies before its first statement, its second, … until one run gets through; after each the next one must do."""
    steps.add("second", "CREATE TABLE second (x integer);\nINSERT INTO second VALUES (1);")
    steps.add("third", "CREATE TABLE third (x integer);")
    real = Session._execute
    left = 0
    dead = False

    def execute(self: Session, statement: str, parameters: Any = None) -> None:
        nonlocal left, dead
        if dead or left == 0:
            dead = True
            raise Died
        left -= 1
        real(self, statement, parameters)

    seen = set()
    for lifetime in range(200):
        place.execute(EMPTY[place.backend])
        with monkeypatch.context() as patch:
            patch.setattr(Session, "_execute", execute)
            left, dead = lifetime, False
            with place.target() as target:
                try:
                    migrate(target, steps.files())
                except Died:
                    pass
                else:
                    break
        # An invalidated connection is closed, as the end of a process would close it.
        with place.target() as target:
            states = [step.state for step in status(target, steps.files())]
            assert set(states) <= {State.APPLIED, State.PENDING}
            seen.add(states.count(State.APPLIED))
            migrate(target, steps.files(), lock_timeout=5)
            validate(target, steps.files())
        assert place.rows("SELECT count(*) FROM second") == [(1,)]
    else:
        pytest.fail("200 statements were not enough")
    assert seen == set(range(len(steps.files()) + 1))


EMPTY = {
    backend: "".join(
        f"DROP TABLE IF EXISTS {table};"
        for table in ("third", "second", "chat_message", "chat_conversation", "chatkeep_schema_history")
    )
    for backend in ("sqlite", "postgresql")
}
