"""The pool of connections: a place that was lost comes back, and costs no connection for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from chatkeep import Message
from chatkeep.backends.relational.backend import RelationalBackend
from chatkeep.backends.relational.database import Database
from tests.conformance.relational_harness import RelationalHarness
from tests.faults.engines import SERVERS, harness_of, marked


@pytest.fixture(params=marked(*SERVERS))
def harness(request: pytest.FixtureRequest) -> Iterator[RelationalHarness]:
    made = harness_of(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("form", ["sync", "async"])
def test_a_connection_that_outlives_its_pool_is_closed(harness: RelationalHarness, form: Any) -> None:
    """One that was in use while the pool was replaced for a lost place."""
    url = harness.fresh_url()
    try:
        with harness.open(form, url) as repository:
            repository.append("conversation", Message.user("before"))
            backend = repository._calls.backend
            assert isinstance(backend, RelationalBackend)
            _replace_pool_during(backend.database, lambda: repository.append("conversation", Message.user("during")))
            repository.append("conversation", Message.user("after"))
            assert repository.count_messages("conversation") == 3
            assert harness.count_sessions(url) == 1
    finally:
        harness.drop(url)


def _replace_pool_during(database: Database, work: Any) -> None:
    """The pool is replaced while `work` holds a connection, as if nothing had moved for long."""
    real = database.dialect.is_idle

    def is_idle(connection: Any) -> bool:  # asked at the end of a call, the connection still being held
        if database.dialect.__dict__.pop("is_idle", None):
            pool = database._pool()
            pool.mend()
            assert pool._seen is not None
            pool._seen = (pool._seen[0], time.monotonic() - 60)
            assert pool.mend()
        return real(connection)

    database.dialect.is_idle = is_idle  # type: ignore[method-assign]
    work()
    assert "is_idle" not in database.dialect.__dict__
