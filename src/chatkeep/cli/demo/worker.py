"""The other process of the demo: opens the database anew, and reads a conversation or writes to one.

A job comes as one line of JSON on standard input: arguments and environment are for others to see, and a URL may hold
a password. The answer is one line of JSON on standard output.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Any, Self

from chatkeep import ChatMemoryRepository, Message
from chatkeep.cli.demo.place import Place

SECONDS = 60
"""After so long a worker is ended: nothing in the demo takes a tenth of it."""
PAUSE = 0.002
"""Seconds between two appends: without one, the first process is done before the second gets the lock."""


class WorkerFailedError(Exception):
    """Another process of the demo ended without an answer; the text is the last line it said."""


class Worker:
    """One such process as the demo sees it: a job in, an answer out; ended with the block that it was made for."""

    def __init__(self, place: Place, job: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chatkeep.cli.demo.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )
        self._timer = threading.Timer(SECONDS, self._process.kill)
        self._timer.daemon = True
        self._timer.start()
        self._say({**job, **place.for_worker()})

    def wait_until_ready(self) -> None:
        """Until it has opened the database."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self.answer()

    def go(self) -> None:
        """Let it begin."""
        self._say({})

    def answer(self) -> Any:
        """What it found. Raises WorkerFailedError where it found nothing."""
        out, err = self._process.communicate()
        if self._process.returncode != 0 or not out.strip():
            said = err.strip().splitlines() or ["it said nothing"]
            raise WorkerFailedError(f"the other process ended with {self._process.returncode}: {said[-1]}")
        return json.loads(out)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _say(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; `answer` tells why
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()


def read(repository: ChatMemoryRepository, job: dict[str, Any]) -> Any:
    """All messages of a conversation, in their dict form."""
    found = repository.find_by_conversation_id(job["conversation"])
    return {"process": os.getpid(), "messages": [message.to_dict() for message in found]}


def write(repository: ChatMemoryRepository, job: dict[str, Any]) -> Any:
    """Many small appends, begun when the demo says so, each of two messages that tell their writer and number."""
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(job["appends"]):
        messages = [Message.user(f"{job['writer']} {number} {half}") for half in ("question", "answer")]
        repository.append(job["conversation"], messages)
        time.sleep(PAUSE)
    return {"process": os.getpid()}


def main() -> None:
    """Do the one job of this process."""
    job = json.loads(sys.stdin.readline())
    task = {"read": read, "write": write}[job["task"]]
    with Place.of_worker(job).open(job["owner"]) as repository:
        print(json.dumps(task(repository, job)), flush=True)


if __name__ == "__main__":
    main()
