"""What other processes do in the tests of concurrency: open a repository, say so, wait for the start, write."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from chatkeep import Message, open_async_repository, open_repository
from chatkeep.conformance.harness import Harness

PATIENCE = 90.0


def in_processes(harness: Harness, work: Callable[..., Any], arguments: list[dict[str, Any]]) -> list[Any]:
    """What `work(**arguments[i])`, a function of this module, prints as JSON in a process of its own for each i.

    All start their work together. A process that fails, or writes to stderr, fails the test.
    """
    imports = "".join(f"import {module}\n" for module in harness.child_imports)
    program = f"{imports}from chatkeep.conformance.workers import {work.__name__} as work, main\nmain(work)"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for each in arguments
    ]
    try:
        for child in children:
            assert child.stdout is not None
            if child.stdout.readline() != "ready\n":
                raise AssertionError(f"a process could not start: {child.communicate(timeout=PATIENCE)[1][-2000:]}")
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        results = []
        for child in children:
            printed, complained = child.communicate(timeout=PATIENCE)
            assert (child.returncode, complained) == (0, ""), complained[-2000:]
            results.append(json.loads(printed))
        return results
    finally:
        for child in children:
            child.kill()
            child.communicate()


def main(work: Callable[..., Any]) -> None:
    """The body of such a process."""
    arguments = json.loads(sys.argv[1])
    print(json.dumps(work(**arguments)))


def ready() -> None:
    """Tell the test that this process is ready, and wait for the others."""
    print("ready", flush=True)
    sys.stdin.readline()


def append_many(form: str, url: str, conversation_id: str, writer: str, calls: int, size: int) -> list[int]:
    """Append `calls` times `size` messages that tell writer, call and place; gives the versions."""
    batches = [
        [Message.user(f"{writer} {call:04} {place}") for place in range(size)]
        for call in range(calls)
    ]  # fmt: skip
    if form == "sync":
        with open_repository(url) as repository:
            ready()
            return [repository.append(conversation_id, batch) for batch in batches]

    async def tasks() -> list[int]:
        async with await open_async_repository(url) as repository:
            ready()
            versions = []
            # Four tasks at a time; a batch of four is over before the next, so that the order per writer is known.
            for start in range(0, calls, 4):
                group = batches[start : start + 4]
                versions += await asyncio.gather(*(repository.append(conversation_id, batch) for batch in group))
            return versions

    return asyncio.run(tasks())


def replace_many(form: str, url: str, conversation_id: str, writer: str, calls: int, size: int) -> list[int]:
    """Replace the conversation `calls` times by `size` messages of this writer; gives the versions."""

    def batch(call: int) -> list[Message]:
        return [Message.user(f"{writer} {call:04} {place}") for place in range(size)]

    if form == "sync":
        with open_repository(url) as repository:
            ready()
            return [repository.save_all(conversation_id, batch(call)) for call in range(calls)]

    async def run() -> list[int]:
        async with await open_async_repository(url) as repository:
            ready()
            return [await repository.save_all(conversation_id, batch(call)) for call in range(calls)]

    return asyncio.run(run())
