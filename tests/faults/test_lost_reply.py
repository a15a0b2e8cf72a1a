"""The connection is cut between the server's commit and its reply: each write, repeated inside or reported, once."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chatkeep import ConcurrentChangeError, Message, Outcome, StorageConnectionError, open_repository
from chatkeep.conformance.harness import Form
from tests.conformance.relational_harness import RelationalHarness
from tests.faults.invariants import Writers, check_usable
from tests.proxy import Proxy


@pytest.fixture
def conversation() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def repository(server: RelationalHarness, proxy: Proxy, form: Form) -> Iterator[Any]:
    """In both forms, with connections that go through the proxy."""
    with server.open(form, proxy.url(), pool_size=2) as repository:
        yield repository


def _texts(repository: Any, conversation: str) -> list[str]:
    return [message.text for message in repository.find_by_conversation_id(conversation)]


# --- repeated inside ---


@pytest.mark.parametrize("known", [False, True], ids=["first append", "later append"])
def test_an_append_is_repeated_and_stored_once(repository: Any, conversation: str, proxy: Proxy, known: bool) -> None:
    if known:
        repository.append(conversation, Message.user("before"))
    proxy.lose_commit("turn-question")
    version = repository.append(conversation, [Message.user("turn-question"), Message.assistant("turn-answer")])
    assert proxy.lost == 1
    assert _texts(repository, conversation) == ["before"] * known + ["turn-question", "turn-answer"]
    assert repository.get_conversation(conversation).version == version
    assert repository.append(conversation, Message.user("after")) > version


def test_an_append_based_on_a_version_succeeds_although_its_own_first_try_made_the_version_stale(
    repository: Any, conversation: str, proxy: Proxy
) -> None:
    version = repository.append(conversation, Message.user("one"))
    proxy.lose_commit("marker-two")
    assert repository.append(conversation, Message.user("marker-two"), expected_version=version) > version
    assert proxy.lost == 1
    assert _texts(repository, conversation) == ["one", "marker-two"]
    with pytest.raises(ConcurrentChangeError):
        repository.append(conversation, Message.user("three"), expected_version=version)


def test_a_replacement_is_repeated(repository: Any, conversation: str, proxy: Proxy) -> None:
    repository.append(conversation, Message.user("old"))
    proxy.lose_commit("marker-new")
    repository.save_all(conversation, [Message.user("marker-new"), Message.assistant("newer")])
    assert proxy.lost == 1
    assert _texts(repository, conversation) == ["marker-new", "newer"]


def test_a_deletion_reports_that_it_deleted(repository: Any, conversation: str, proxy: Proxy) -> None:
    repository.append(conversation, Message.user("gone"))
    proxy.lose_commit(conversation)
    assert repository.delete_by_conversation_id(conversation) is True
    assert proxy.lost == 1
    assert repository.delete_by_conversation_id(conversation) is False


def test_an_update_is_repeated(repository: Any, conversation: str, proxy: Proxy) -> None:
    repository.append(conversation, Message.user("kept"))
    proxy.lose_commit("marker-title")
    updated = repository.update_conversation(conversation, title="marker-title", metadata={"a": 1})
    assert proxy.lost == 1
    assert (updated.title, updated.metadata, updated.message_count) == ("marker-title", {"a": 1}, 1)
    assert repository.get_conversation(conversation) == updated


def test_a_read_is_repeated(repository: Any, conversation: str, proxy: Proxy) -> None:
    repository.append(conversation, Message.user("kept"))
    for _ in range(2):
        proxy.lose_reply(conversation)
        assert _texts(repository, conversation) == ["kept"]
    assert proxy.lost == 2


def test_what_broke_before_the_commit_left_nothing_and_is_repeated(
    repository: Any, conversation: str, proxy: Proxy
) -> None:
    version = repository.append(conversation, Message.user("old"))
    proxy.lose_reply(conversation)  # which the lock is taken by
    assert repository.save_all(conversation, [Message.user("new")], expected_version=version) > version
    assert proxy.lost == 1
    assert _texts(repository, conversation) == ["new"]


# --- reported, where a second try could not tell its own success from another writer's ---


def test_a_conditional_replacement_says_unknown(repository: Any, conversation: str, proxy: Proxy) -> None:
    version = repository.append(conversation, Message.user("old"))
    proxy.lose_commit("marker-new")
    with pytest.raises(StorageConnectionError) as caught:
        repository.save_all(conversation, [Message.user("marker-new")], expected_version=version)
    assert caught.value.outcome is Outcome.UNKNOWN
    assert _texts(repository, conversation) == ["marker-new"]


def test_deleting_messages_says_unknown(repository: Any, conversation: str, proxy: Proxy) -> None:
    repository.append(conversation, [Message.user("a", id="a"), Message.user("b", id="b")])
    proxy.lose_commit(conversation)
    with pytest.raises(StorageConnectionError) as caught:
        repository.delete_messages(conversation, ["a"])
    assert caught.value.outcome is Outcome.UNKNOWN
    assert _texts(repository, conversation) == ["b"]


# --- reported, where the server stays away and the retries run out ---

MARKER = Message.user("marker", id="marker")
WRITES: dict[str, tuple[str | None, Callable[[Any, str], object], list[str]]] = {
    "append": ("marker", lambda store, name: store.append(name, MARKER), ["old", "marker"]),
    "save_all": ("marker", lambda store, name: store.save_all(name, [MARKER]), ["marker"]),
    "delete": (None, lambda store, name: store.delete_by_conversation_id(name), []),
    "update": ("marker", lambda store, name: store.update_conversation(name, title="marker"), ["old"]),
}
"""By name: the text whose commit is lost (None: the conversation's id), the call, and what is stored after it."""


@pytest.mark.parametrize("write", WRITES)
def test_retries_that_run_out_after_a_lost_commit_say_unknown(
    server: RelationalHarness, proxy: Proxy, form: Form, conversation: str, database: str, write: str
) -> None:
    text, call, expected = WRITES[write]
    with server.open(form, proxy.url(), pool_size=2, retry_timeout="0.2s") as repository:
        repository.append(conversation, Message.user("old"))
        proxy.refuse_after_loss = True
        proxy.lose_commit(text or conversation)
        with pytest.raises(StorageConnectionError) as caught:
            call(repository, conversation)
        # The last try met a refused connection, which alone would mean that nothing was written.
        assert (proxy.lost, caught.value.outcome) == (1, Outcome.UNKNOWN)
        with open_repository(database) as direct:
            assert _texts(direct, conversation) == expected
        proxy.refuse = proxy.refuse_after_loss = False
        call(repository, conversation)
        assert _texts(repository, conversation) == expected
        check_usable(repository)


def test_retries_that_run_out_before_any_commit_say_not_applied(
    server: RelationalHarness, proxy: Proxy, form: Form, conversation: str
) -> None:
    with server.open(form, proxy.url(), pool_size=2, retry_timeout="0.2s") as repository:
        repository.append(conversation, Message.user("old"))
        proxy.refuse_after_loss = True
        proxy.lose_reply(conversation)  # which the lock is taken by
        with pytest.raises(StorageConnectionError) as caught:
            repository.save_all(conversation, [Message.user("new")])
        assert (proxy.lost, caught.value.outcome) == (1, Outcome.NOT_APPLIED)
        proxy.refuse = False
        assert _texts(repository, conversation) == ["old"]
        check_usable(repository)


# --- again and again ---


def test_writers_survive_connections_that_break_again_and_again(
    server: RelationalHarness, proxy: Proxy, database: str, conversation: str
) -> None:
    stop = threading.Event()

    def cutter() -> None:
        while not stop.wait(0.15):
            proxy.cut_all()

    writers = Writers(conversation)
    breaking = threading.Thread(target=cutter)
    with (
        server.open("sync", proxy.url(), pool_size=4) as synchronous,
        server.open("async", proxy.url(), pool_size=4) as asynchronous,
    ):
        breaking.start()
        try:
            writers.start(synchronous, "abcd", messages=15)
            writers.start(asynchronous, "efgh", messages=15)
            writers.finish(stop=False)
        finally:
            stop.set()
            breaking.join()
        for repository in (synchronous, asynchronous):
            check_usable(repository)
    assert writers.count() == 120
    with open_repository(database) as direct:
        writers.check(direct)
