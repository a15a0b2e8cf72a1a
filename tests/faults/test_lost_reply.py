"""The connection is cut between the server's commit and its reply: each write, repeated inside or reported, once."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.engine import URL

from chatkeep import (
    ConcurrentChangeError,
    Message,
    Outcome,
    StorageConnectionError,
    open_async_repository,
    open_repository,
)
from tests.faults.proxy import Proxy

pytestmark = pytest.mark.postgresql

COMMIT = b"COMMIT\0"
"""As it stands on the wire; BEGIN … READ COMMITTED holds the word too."""


@pytest.fixture
def proxy(database: URL) -> Iterator[Proxy]:
    proxy = Proxy(str(database.host), database.port or 5432)
    yield proxy
    proxy.close()


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, database: URL, proxy: Proxy) -> Iterator[Callable[..., Any]]:
    """`call("append", …)` on a repository whose connections go through the proxy, in both forms."""
    url = database.set(host="127.0.0.1", port=proxy.port)
    if request.param == "sync":
        with open_repository(url, pool_size=2) as repository:
            yield lambda name, *args, **kwargs: getattr(repository, name)(*args, **kwargs)
        return
    with asyncio.Runner() as runner:
        opened = runner.run(_opened(url))
        yield lambda name, *args, **kwargs: runner.run(getattr(opened, name)(*args, **kwargs))
        runner.run(opened.close())


async def _opened(url: URL) -> Any:
    return await open_async_repository(url, pool_size=2)


def _texts(call: Callable[..., Any], conversation: str) -> list[str]:
    return [message.text for message in call("find_by_conversation_id", conversation)]


def _of(*words: bytes) -> Callable[[bytes], bool]:
    return lambda data: any(word in data for word in words)


@pytest.mark.parametrize("known", [False, True], ids=["first append", "later append"])
def test_an_append_whose_reply_was_lost_is_repeated_and_stored_once(
    call: Callable[..., Any], proxy: Proxy, known: bool
) -> None:
    conversation = uuid.uuid4().hex
    if known:
        call("append", conversation, Message.user("before"))
    proxy.lose_reply_when(_of(b"turn-question"))
    version = call("append", conversation, [Message.user("turn-question"), Message.assistant("turn-answer")])
    assert proxy.lost == 1
    assert _texts(call, conversation) == ["before"] * known + ["turn-question", "turn-answer"]
    assert call("get_conversation", conversation).version == version
    assert call("append", conversation, Message.user("after")) > version


def test_an_append_based_on_a_version_succeeds_although_its_own_first_try_made_the_version_stale(
    call: Callable[..., Any], proxy: Proxy
) -> None:
    conversation = uuid.uuid4().hex
    version = call("append", conversation, Message.user("one"))
    proxy.lose_reply_when(_of(b"marker-two"))
    assert call("append", conversation, Message.user("marker-two"), expected_version=version) > version
    assert proxy.lost == 1
    assert _texts(call, conversation) == ["one", "marker-two"]
    with pytest.raises(ConcurrentChangeError):
        call("append", conversation, Message.user("three"), expected_version=version)


def test_a_replacement_whose_commit_reply_was_lost_is_repeated(call: Callable[..., Any], proxy: Proxy) -> None:
    conversation = uuid.uuid4().hex
    call("append", conversation, Message.user("old"))
    proxy.lose_reply_when(_of(COMMIT))
    call("save_all", conversation, [Message.user("new"), Message.assistant("newer")])
    assert proxy.lost == 1
    assert _texts(call, conversation) == ["new", "newer"]


def test_a_conditional_replacement_whose_commit_reply_was_lost_says_unknown(
    call: Callable[..., Any], proxy: Proxy
) -> None:
    conversation = uuid.uuid4().hex
    version = call("append", conversation, Message.user("old"))
    proxy.lose_reply_when(_of(COMMIT))
    with pytest.raises(StorageConnectionError) as caught:
        call("save_all", conversation, [Message.user("new")], expected_version=version)
    assert caught.value.outcome is Outcome.UNKNOWN
    assert _texts(call, conversation) == ["new"]


def test_a_connection_lost_before_the_commit_leaves_nothing_and_the_call_is_repeated(
    call: Callable[..., Any], proxy: Proxy
) -> None:
    conversation = uuid.uuid4().hex
    version = call("append", conversation, Message.user("old"))
    proxy.lose_reply_when(_of(b"DELETE FROM chat_message"))
    assert call("save_all", conversation, [Message.user("new")], expected_version=version) > version
    assert proxy.lost == 1
    assert _texts(call, conversation) == ["new"]


def test_a_deletion_whose_commit_reply_was_lost_reports_that_it_deleted(call: Callable[..., Any], proxy: Proxy) -> None:
    conversation = uuid.uuid4().hex
    call("append", conversation, Message.user("gone"))
    proxy.lose_reply_when(_of(COMMIT))
    assert call("delete_by_conversation_id", conversation) is True
    assert proxy.lost == 1
    assert call("delete_by_conversation_id", conversation) is False


def test_deleting_messages_says_unknown_after_a_lost_reply(call: Callable[..., Any], proxy: Proxy) -> None:
    conversation = uuid.uuid4().hex
    call("append", conversation, [Message.user("a", id="a"), Message.user("b", id="b")])
    proxy.lose_reply_when(_of(COMMIT))
    with pytest.raises(StorageConnectionError) as caught:
        call("delete_messages", conversation, ["a"])
    assert caught.value.outcome is Outcome.UNKNOWN
    assert _texts(call, conversation) == ["b"]


def test_a_read_whose_reply_was_lost_is_repeated(call: Callable[..., Any], proxy: Proxy) -> None:
    conversation = uuid.uuid4().hex
    call("append", conversation, Message.user("kept"))
    for _ in range(2):
        proxy.lose_reply_when(_of(conversation.encode()))
        assert _texts(call, conversation) == ["kept"]
    assert proxy.lost == 2


def test_writers_survive_connections_that_break_again_and_again(database: URL, proxy: Proxy) -> None:
    """Nothing acknowledged is lost, nothing is stored twice, and each writer's messages keep their order."""
    conversation = uuid.uuid4().hex
    stop = threading.Event()

    def cutter() -> None:
        while not stop.wait(0.05):
            proxy.cut_all()

    acknowledged: dict[int, list[str]] = {writer: [] for writer in range(4)}
    with open_repository(database.set(host="127.0.0.1", port=proxy.port), pool_size=4) as repository:

        def write(writer: int) -> None:
            for number in range(40):
                text = f"{writer}:{number}"
                repository.append(conversation, Message.user(text))
                acknowledged[writer].append(text)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in acknowledged]
        breaking = threading.Thread(target=cutter)
        breaking.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        breaking.join()
    with open_repository(database) as repository:
        stored = [message.text for message in repository.find_by_conversation_id(conversation)]
    for writer, texts in acknowledged.items():
        assert len(texts) == 40
        assert [text for text in stored if text.startswith(f"{writer}:")] == texts
    assert len(stored) == 160


def test_a_server_that_refuses_for_a_while_is_waited_for(database: URL, proxy: Proxy) -> None:
    with open_repository(database.set(host="127.0.0.1", port=proxy.port), pool_size=1) as repository:
        conversation = uuid.uuid4().hex
        repository.append(conversation, Message.user("before"))
        proxy.refuse = True
        proxy.cut_all()
        threading.Timer(1.0, setattr, (proxy, "refuse", False)).start()
        begun = time.monotonic()
        repository.append(conversation, Message.user("after"))
        assert time.monotonic() - begun > 0.9
        assert repository.count_messages(conversation) == 2


def test_a_server_that_stays_away_is_a_readable_error(database: URL, proxy: Proxy) -> None:
    url = database.set(host="127.0.0.1", port=proxy.port)
    with open_repository(url, pool_size=1, retry_timeout="300ms") as repository:
        proxy.refuse = True
        proxy.cut_all()
        with pytest.raises(StorageConnectionError, match=r"postgresql at .*: no connection") as caught:
            repository.append("c", Message.user("x"))
        assert caught.value.outcome is Outcome.NOT_APPLIED
        assert str(url.password) not in str(caught.value)
