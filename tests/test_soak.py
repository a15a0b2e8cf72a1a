"""The soak passes over what is right and finds each of the broken repositories."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import chatkeep
from benchmarks.soak import run
from benchmarks.soak.group import Doors
from benchmarks.soak.plan import Plan
from benchmarks.soak.violation import Promise
from chatkeep import ChatMemoryRepository, Message, open_repository
from tests.soak_mutants import MUTANTS, FailsHonestly, Wrapper

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "benchmarks.soak"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(chatkeep.__file__).parent.parent)}


def soak(wrap: Callable[[ChatMemoryRepository], Any], seconds: float) -> run.Report:
    """A run of four threads over wrapped in-process repositories of one namespace."""
    url = f"inprocess:test_{uuid.uuid4().hex}"

    def open_wrapped() -> ChatMemoryRepository:
        return cast(ChatMemoryRepository, wrap(open_repository(url)))

    doors = Doors(open_wrapped, lambda: pytest.fail("nothing is asynchronous here"))
    return run.soak(Plan(seconds=seconds, workers=4, seed=17), doors)


@pytest.mark.inprocess
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_repository_is_found(mutant: type[Wrapper]) -> None:
    # The one fault that shows after the load needs no long one.
    report = soak(mutant, seconds=0.2 if Promise.POOL in MUTANTS[mutant] else 5.0)

    assert report.findings, f"{mutant.__name__} was not noticed"
    assert report.findings[0].promise in MUTANTS[mutant], report.findings[0]


@pytest.mark.inprocess
def test_errors_that_keep_their_word_are_counted_and_no_fault() -> None:
    report = soak(FailsHonestly, seconds=0.7)

    assert report.findings == []
    assert {kind for _, kind in report.tally.errors} == {
        "StorageConnectionError",
        "StorageTimeoutError (outcome unknown)",
    }


@pytest.mark.inprocess
def test_a_call_that_never_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "GRACE", 0.2)
    released = threading.Event()

    class Hangs(Wrapper):
        def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
            released.wait(30)
            return self.inner.append(conversation, messages, **options)

    try:
        report = soak(Hangs, seconds=0.1)
    finally:
        released.set()

    assert report.hangs
    assert [finding.promise for finding in report.findings] == [Promise.ENDS]


@pytest.mark.sqlite
def test_threads_on_sqlite_pass(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/soak.db?synchronous=off"

    report = run.soak(Plan(seconds=0.5, workers=4, seed=17), Doors.of(url))

    assert report.findings == []
    assert {"append", "read window", "save_all", "delete conversation"} <= report.tally.times.keys()


@pytest.mark.sqlite
def test_the_command_with_tasks_in_two_processes_passes() -> None:
    more = ["--backend", "sqlite", "--seconds", "0.5", "--workers", "4", "--asynchronous", "--processes", "2"]
    ended = subprocess.run(
        [*COMMAND, *more], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "read window" in ended.stdout
    assert ended.stdout.endswith("PASSED\n")


@pytest.mark.inprocess
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal on POSIX systems only")
def test_ctrl_c_ends_it_with_the_table() -> None:
    command = [*COMMAND, "--backend", "inprocess", "--seconds", "60", "--workers", "2"]
    with subprocess.Popen(
        command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert "seed" in started.stdout.readline()
        time.sleep(0.3)
        started.send_signal(signal.SIGINT)
        printed, complained = started.communicate(timeout=60)

    assert started.returncode == 130, complained
    assert "append" in printed
    assert "interrupted" in printed
