"""C15 closing: a closed repository says so, and its connections are gone."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable

import pytest

from chatkeep import ChatMemoryRepository, Message, RepositoryClosedError, StorageConnectionError
from chatkeep.conformance.contract.c13_identity import CALLS
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import eventually, in_threads, new_id, said

ALL_CALLS: dict[str, Callable[[ChatMemoryRepository], object]] = {
    **{name: functools.partial(call, conversation_id="some-id") for name, call in CALLS.items()},
    "find_conversation_ids": lambda repository: repository.find_conversation_ids(),
    "list_conversations": lambda repository: repository.list_conversations(),
    "purge_expired": lambda repository: repository.purge_expired(),
    "for_owner": lambda repository: repository.for_owner("someone"),
    "enter": lambda repository: repository.__enter__(),
}


class TestC15Closing:
    """The end of a repository."""

    @pytest.mark.parametrize("name", ALL_CALLS)
    def test_a_closed_repository_says_so(self, opened: Opened, conversation_id: str, name: str) -> None:
        """Every call raises RepositoryClosedError, on the repository and on its owners' handles."""
        repository = opened()
        repository.append(conversation_id, said(1))
        handle = repository.for_owner(new_id("owner"))
        repository.close()
        for closed in (repository, handle):
            with pytest.raises(RepositoryClosedError):
                ALL_CALLS[name](closed)

    def test_closing_twice_is_closing_once(self, opened: Opened) -> None:
        """Also when nothing was ever asked, and by way of `with`."""
        repository = opened()
        repository.close()
        repository.close()
        with opened() as other:
            other.append(new_id(), said(1))
            other.close()
        other.close()

    def test_leaving_the_context_closes(self, opened: Opened, conversation_id: str) -> None:
        """Also by an error, which is passed on; what was written is kept."""
        with pytest.raises(ZeroDivisionError):
            with opened() as repository:
                repository.append(conversation_id, said(1))
                raise ZeroDivisionError
        with pytest.raises(RepositoryClosedError):
            repository.find_conversation_ids()
        assert opened().count_messages(conversation_id) == 1

    def test_closing_a_handle_leaves_the_root_open(self, opened: Opened, conversation_id: str) -> None:
        """And other handles too."""
        root, owner = opened(), new_id("owner")
        one, two = root.for_owner(owner), root.for_owner(owner)
        one.append(conversation_id, said(1))
        one.close()
        with pytest.raises(RepositoryClosedError):
            one.count_messages(conversation_id)
        assert two.count_messages(conversation_id) == 1
        root.append(conversation_id, said(1))

    def test_closing_one_repository_leaves_others_open(self, opened: Opened, conversation_id: str) -> None:
        """Two repositories of one URL share nothing that a close could take away."""
        one, two = opened(), opened()
        one.append(conversation_id, said(1))
        one.close()
        two.append(conversation_id, said(1, "two"))
        assert two.count_messages(conversation_id) == 2

    def test_closing_while_others_call_is_clean(
        self, harness: Harness, opened: Opened, fresh_url: Callable[[], str], conversation_id: str
    ) -> None:
        """Callers in flight get their answer, or hear that it is closed; no connection stays open."""
        url = fresh_url()
        repository = opened(url)
        started = threading.Event()

        def work(number: int) -> list[Message]:
            written: list[Message] = []
            if number == 0:
                started.wait(30)
                repository.close()
                return written
            with contextlib.suppress(RepositoryClosedError, StorageConnectionError):
                for turn in range(200):
                    (message,) = said(1, f"{number} {turn}")
                    repository.append(conversation_id, message)
                    written.append(message)
                    started.set()
            return written

        acknowledged = [message for written in in_threads(4, work) for message in written]
        if harness.why_not("count_sessions") is None:
            assert eventually(lambda: harness.count_sessions(url) == 0), "a closed repository holds a session"
        found = opened(url).find_by_conversation_id(conversation_id)
        assert {message.id for message in acknowledged} <= {message.id for message in found}

    @needs("kill_sessions")
    def test_closing_after_the_server_ended_the_sessions_is_clean(
        self, harness: Harness, fresh_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No error, and no connection that only its finalizer closes."""
        url = fresh_url()
        forgotten: list[str] = []
        monkeypatch.setattr(sys, "unraisablehook", lambda found: forgotten.append(str(found.exc_value)))
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            for _ in range(3):
                with harness.open("async", url) as repository:
                    in_threads(4, functools.partial(_append_to, repository))
                    assert harness.kill_sessions(url) > 0
                    time.sleep(0.05)  # until it has come to the client that they are gone
                del repository
            gc.collect()
        assert not forgotten


def _append_to(repository: ChatMemoryRepository, number: int) -> None:
    repository.append(str(number), said(1))
