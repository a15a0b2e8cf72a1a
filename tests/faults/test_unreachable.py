"""A server that refuses connections, for a while or for good."""

from __future__ import annotations

import threading
import time
import uuid

import pytest
from sqlalchemy.engine import make_url

from chatkeep import Outcome, StorageConnectionError, open_repository
from chatkeep.conformance.harness import Form
from chatkeep.message import Message
from tests.conformance.relational_harness import RelationalHarness
from tests.faults.invariants import Writers, check_usable
from tests.proxy import Proxy

AWAY = 5.0
"""Seconds; calls are retried for 10."""


def test_a_server_that_refuses_for_a_while_is_waited_for(
    server: RelationalHarness, proxy: Proxy, database: str
) -> None:
    writers = Writers(uuid.uuid4().hex)
    with (
        server.open("sync", proxy.url(), pool_size=2) as synchronous,
        server.open("async", proxy.url(), pool_size=2) as asynchronous,
    ):
        check_usable(synchronous, calls=2)
        check_usable(asynchronous, calls=2)
        proxy.refuse = True
        proxy.cut_all()
        begun = time.monotonic()
        timer = threading.Timer(AWAY, setattr, (proxy, "refuse", False))
        timer.start()
        writers.start(synchronous, "ab", messages=1)
        writers.start(asynchronous, "cd", messages=1)
        writers.finish(stop=False)
        waited = time.monotonic() - begun
        timer.join()
        assert AWAY - 0.1 < waited < AWAY + 4.0
        assert not writers.errors, "a caller heard of it"
        check_usable(synchronous)
        check_usable(asynchronous)
    with open_repository(database) as direct:
        writers.check(direct)


def test_a_server_that_stays_away_is_a_readable_error(server: RelationalHarness, proxy: Proxy, form: Form) -> None:
    conversation = uuid.uuid4().hex
    url = make_url(proxy.url())
    with server.open(form, proxy.url(), pool_size=2, retry_timeout="0.5s") as repository:
        repository.append(conversation, Message.user("before"))
        proxy.refuse = True
        proxy.cut_all()
        begun = time.monotonic()
        with pytest.raises(StorageConnectionError) as caught:
            repository.append(conversation, Message.user("after"))
        assert time.monotonic() - begun < 3.0
        assert caught.value.outcome is Outcome.NOT_APPLIED
        text = str(caught.value)
        assert text.startswith(f"{server.backend} at {server.backend}://")
        assert f"127.0.0.1:{url.port}" in text
        assert "no connection" in text
        assert str(url.password) not in text
        proxy.refuse = False
        assert [message.text for message in repository.find_by_conversation_id(conversation)] == ["before"]
        check_usable(repository)
