"""What the contract's tests share: messages that tell their order, random ids, threads that start together."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from chatkeep import ChatMemoryRepository, Message, memory
from chatkeep.conformance.blocking import BlockingRepository, blocking
from chatkeep.conformance.harness import READER, Harness
from chatkeep.conversation import HistoryEntry, Page
from chatkeep.memory import ChatMemory

T = TypeVar("T")


def new_id(prefix: str = "conversation") -> str:
    """A random id, so that tests in one namespace don't meet."""
    return f"{prefix}-{uuid.uuid4().hex}"


def said(count: int, prefix: str = "line", **fields: Any) -> list[Message]:
    """Messages whose texts tell their order, user and assistant in turn."""
    return [
        Message(("user", "assistant")[number % 2], Message.user(f"{prefix} {number:05}").parts, **fields)
        for number in range(count)
    ]


def memory_over(repository: ChatMemoryRepository, name: str, *arguments: Any, **options: Any) -> ChatMemory:
    """The memory of this name over a repository, in the repository's form."""
    if isinstance(repository, BlockingRepository):
        made = getattr(memory, f"Async{name}")(repository.asynchronous, *arguments, **options)
        return cast(ChatMemory, blocking(made))
    return cast(ChatMemory, getattr(memory, name)(repository, *arguments, **options))


def texts(messages: Iterable[Message]) -> list[str]:
    """The text of each message."""
    return [message.text for message in messages]


def messages_of(entries: Iterable[HistoryEntry]) -> list[Message]:
    """The messages of history entries."""
    return [entry.message for entry in entries]


def all_pages(first: Page[T], ask: Callable[[str], Page[T]], most: int = 1000) -> list[Page[T]]:
    """The first page and those that follow it, as `ask(cursor)` gives them; fails where they never end."""
    pages = [first]
    while (cursor := pages[-1].next_cursor) is not None:
        assert len(pages) < most, f"after {most} pages there is still another"
        pages.append(ask(cursor))
    return pages


def whole_history(repository: ChatMemoryRepository, conversation_id: str, limit: int = 100) -> list[HistoryEntry]:
    """All entries, page by page."""
    first = repository.history(conversation_id, limit=limit)
    pages = all_pages(first, lambda cursor: repository.history(conversation_id, after=cursor, limit=limit))
    return [entry for page in pages for entry in page.items]


def counted(harness: Harness, call: Callable[[], object]) -> list[str]:
    """The statements of one call."""
    with harness.statements() as sent:
        call()
    return list(sent)


def in_threads(count: int, work: Callable[[int], T], patience: float = 120.0) -> list[T]:
    """What `work(0)` … `work(count - 1)` give, in threads that start together; raises what one of them raised."""
    start = threading.Barrier(count)

    def at_once(number: int) -> T:
        start.wait(patience)
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return [future.result(patience) for future in [threads.submit(at_once, number) for number in range(count)]]


class Polling:
    """A second reader: calls `look` again and again in a thread while the test writes; `seen` is what it saw."""

    def __init__(self, look: Callable[[], Any]) -> None:
        self.seen: list[Any] = []
        self.error: BaseException | None = None
        self._look = look
        self._stop = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._poll, name=READER, daemon=True)

    def __enter__(self) -> Polling:
        self._thread.start()
        assert self._first.wait(30), "the second reader saw nothing within 30 seconds"
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the second reader hangs"
        if self.error is not None:
            raise self.error

    def _poll(self) -> None:
        try:
            while not self._stop.is_set():
                self.seen.append(self._look())
                self._first.set()
        except BaseException as error:
            self.error = error
            self._first.set()


def contiguous(order: Sequence[str], group: Sequence[str]) -> bool:
    """Whether `group` stands in `order` side by side and in its own order."""
    if not group or group[0] not in order:
        return not group
    first = order.index(group[0])
    return list(order[first : first + len(group)]) == list(group)


def outlive(ttl: dt.timedelta) -> None:
    """Wait until what had this life is surely over."""
    time.sleep(ttl.total_seconds() + 0.05)


def eventually(question: Callable[[], bool], patience: float = 5.0) -> bool:
    """Whether the answer becomes true: a server takes a moment to notice that a client has left."""
    pause = threading.Event()
    for _ in range(int(patience / 0.05)):
        if question():
            return True
        pause.wait(0.05)
    return False


def run_program(harness: Harness, program: str, *arguments: str, patience: float = 60.0, silent: bool = True) -> str:
    """What a Python program of its own prints; it must end well and, if `silent`, write nothing to stderr."""
    imports = "".join(f"import {module}\n" for module in harness.child_imports)
    done = subprocess.run(
        [sys.executable, "-c", imports + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    assert not (silent and done.stderr), done.stderr[-2000:]
    return done.stdout
