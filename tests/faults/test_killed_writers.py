"""A process that is killed while it writes: what it was told is stored is there, and others go on at once.

For SQLite, which has no server, this is what the crash of one is for the others (test_restarts.py).
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid

from chatkeep import open_repository
from chatkeep.conformance.harness import Form
from tests.conformance.relational_harness import RelationalHarness
from tests.faults.invariants import Writers, check_usable
from tests.services import REPOSITORY_ROOT

PROGRAM = """
import os, sys, threading
from chatkeep import Message, open_async_repository, open_repository
from chatkeep.conformance.blocking import blocking, wait_for

url, conversation, form = sys.argv[1:]
if form == "sync":
    repository = open_repository(url, pool_size=4)
else:
    repository = blocking(wait_for(open_async_repository(url, pool_size=4)))

def write(name):
    for number in range(1_000_000):
        repository.append(conversation, Message.user(f"{name}:{number}"))
        os.write(1, f"{name}:{number}\\n".encode())

threads = [threading.Thread(target=write, args=(name,)) for name in "abcdefgh"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
ENOUGH = 120
"""Messages that are acknowledged before the process is killed."""


def test_a_process_is_killed_while_it_writes(harness: RelationalHarness, url: str, form: Form) -> None:
    writers = Writers(uuid.uuid4().hex)
    writers.expect("abcdefgh")
    command = [sys.executable, "-c", PROGRAM, url, writers.conversation, form]
    with subprocess.Popen(command, cwd=REPOSITORY_ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            writers.heard(line.strip())
            if writers.count() == ENOUGH:
                process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert writers.count() >= ENOUGH
    _wait_for_the_end_of_sessions(harness, url)
    with open_repository(url) as repository:
        writers.check(repository)
        writers.start(repository, "xyz", messages=5)
        writers.finish(stop=False)
        assert not writers.errors, "the dead process still holds something"
        writers.check(repository)
        check_usable(repository)


def _wait_for_the_end_of_sessions(harness: RelationalHarness, url: str) -> None:
    """A server first finishes what the dead process had sent."""
    deadline = time.monotonic() + 20.0
    while "count_sessions" not in harness.cannot and harness.count_sessions(url):
        assert time.monotonic() < deadline, "the server keeps sessions of a process that is dead"
        time.sleep(0.02)
