"""A server that goes down under its writers and comes back: by a crash, and by an administrator's hand."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest

from chatkeep import StorageConnectionError, StorageTimeoutError, open_async_repository, open_repository
from chatkeep.conformance.blocking import blocking, wait_for
from tests import services
from tests.faults.engines import SERVERS, marked
from tests.faults.invariants import Writers, check_usable
from tests.own_server import OwnServer
from tests.servers import SERVERS as PROBES

BACK_WITHIN = 30.0


@pytest.fixture(scope="module", params=marked(*SERVERS))
def own(request: pytest.FixtureRequest) -> Iterator[OwnServer]:
    own = OwnServer(request.param, "restarts")
    open_repository(own.url, schema="migrate").close()
    yield own
    own.stop()


@pytest.mark.parametrize("down", ["kill", "shut_down"])
def test_writers_go_on_after_their_server_was_down(own: OwnServer, down: str) -> None:
    writers = Writers(uuid.uuid4().hex)
    # The retries run out while the server is down, so that callers meet errors and repeat their calls.
    options = {"pool_size": 4, "retry_timeout": "0.3s"}
    with (
        open_repository(own.url, **options) as synchronous,
        blocking(wait_for(open_async_repository(own.url, **options))) as asynchronous,
    ):
        writers.start(synchronous, "abcd")
        writers.start(asynchronous, "efgh")
        writers.wait_for(80)
        getattr(own, down)()
        time.sleep(1.0)
        before = {name: len(texts) for name, texts in writers.acknowledged.items()}
        own.start()
        services.wait_until_ready(own.url, PROBES[own.backend].probe, within=BACK_WITHIN)
        writers.wait_for(80)
        writers.finish()
        assert all(len(texts) > before[name] for name, texts in writers.acknowledged.items()), "a writer got stuck"
        assert writers.errors, "nobody noticed; was the server down at all?"
        kinds = {type(error) for error in writers.errors}
        assert kinds <= {StorageConnectionError, StorageTimeoutError}, writers.errors
        for repository in (synchronous, asynchronous):
            writers.check(repository)
            check_usable(repository)
