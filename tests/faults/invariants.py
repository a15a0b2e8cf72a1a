"""What must hold after any fault: nothing acknowledged is lost, nothing is doubled, each writer's messages keep their
order, what was refused was not written, and the pool is as usable as before."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chatkeep import Message, Outcome, StorageError

PATIENCE = 30.0
"""Seconds that any call may take at most, with all its retries."""


class Writers:
    """Writers of one conversation, and what each of them was told.

    A writer that meets a StorageError appends the same message again, as the contract says it may; anything else that
    a call raises is a failure of the test.
    """

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        self.attempted: dict[str, list[str]] = {}
        self.acknowledged: dict[str, list[str]] = {}
        self.errors: list[StorageError] = []
        """What was raised on the way."""
        self._refused: set[str] = set()
        self._broken: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def start(self, repository: Any, names: str, *, messages: int | None = None) -> None:
        """One thread for each character of `names`; each appends so many messages, or goes on until `finish`."""
        for name in names:
            self.attempted[name], self.acknowledged[name] = [], []
            thread = threading.Thread(target=self._write, args=(repository, name, messages))
            self._threads.append(thread)
            thread.start()

    def expect(self, names: str) -> None:
        """These write in another process, which says of each message that is acknowledged; see `heard`."""
        for name in names:
            self.attempted[name], self.acknowledged[name] = [f"{name}:0"], []

    def heard(self, text: str) -> None:
        """A writer in another process was told that this message is stored; the next one it may have sent as well."""
        name, _, number = text.partition(":")
        self.acknowledged[name].append(text)
        self.attempted[name].append(f"{name}:{int(number) + 1}")

    def count(self) -> int:
        """Messages acknowledged so far."""
        return sum(map(len, self.acknowledged.values()))

    def wait_for(self, more: int, *, within: float = PATIENCE) -> None:
        """Until so many more messages are acknowledged."""
        goal, deadline = self.count() + more, time.monotonic() + within
        while self.count() < goal:
            assert not self._broken, f"a writer broke off: {self._broken[0]!r}"
            assert time.monotonic() < deadline, f"{goal - self.count()} of {more} messages not stored; {self._last()}"
            time.sleep(0.01)

    def finish(self, *, stop: bool = True) -> None:
        """Wait for the writers, those that were given no number of messages after telling them to stop."""
        if stop:
            self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"a writer hangs; {self._last()}"
        assert not self._broken, f"a writer broke off: {self._broken[0]!r}"

    def check(self, repository: Any) -> None:
        """Compare what was told with what is stored."""
        stored = [message.text for message in repository.find_by_conversation_id(self.conversation)]
        for name, acknowledged in self.acknowledged.items():
            own = [text for text in stored if text.startswith(f"{name}:")]
            assert len(set(own)) == len(own), f"writer {name}: stored twice"
            assert own == [text for text in self.attempted[name] if text in set(own)], f"writer {name}: out of order"
            lost = [text for text in acknowledged if text not in set(own)]
            assert not lost, f"writer {name}: acknowledged and lost"
            refused = self._refused.intersection(own)
            assert not refused, f"writer {name}: said to be not applied, and stored"
        assert len(stored) == sum(text[1:2] == ":" and text[0] in self.attempted for text in stored)
        assert repository.count_messages(self.conversation) == len(stored)
        assert repository.get_conversation(self.conversation).message_count == len(stored)

    def _write(self, repository: Any, name: str, messages: int | None) -> None:
        number = 0
        try:
            while number != messages and not (messages is None and self._stop.is_set()):
                text = f"{name}:{number}"
                self.attempted[name].append(text)
                if not self._append(repository, text):
                    return
                self.acknowledged[name].append(text)
                number += 1
        except BaseException as error:
            self._broken.append(error)

    def _append(self, repository: Any, text: str) -> bool:
        """Append a message until it is acknowledged or the writers are told to stop."""
        message = Message.user(text)
        unknown = False
        while True:
            try:
                repository.append(self.conversation, message)
                return True
            except StorageError as error:
                self.errors.append(error)
                unknown = unknown or error.outcome is Outcome.UNKNOWN
            if self._stop.is_set():
                if not unknown:
                    self._refused.add(text)
                return False
            time.sleep(0.01)

    def _last(self) -> str:
        return f"the last error: {self.errors[-1]!r}" if self.errors else "no error was raised"


def check_usable(repository: Any, *, calls: int = 24) -> None:
    """More calls at once than the pool has connections: all succeed, in time, so none has leaked."""
    conversation = f"usable-{time.monotonic_ns()}"
    begun = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        done = [threads.submit(repository.append, conversation, Message.user(f"{number}")) for number in range(calls)]
        for each in done:
            each.result(PATIENCE)
    assert time.monotonic() - begun < PATIENCE
    texts = [message.text for message in repository.find_by_conversation_id(conversation)]
    assert sorted(texts, key=int) == [f"{number}" for number in range(calls)]
    assert repository.delete_by_conversation_id(conversation) is True
