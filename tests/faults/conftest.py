"""Databases for the fault tests, on every SQL engine or on every server, gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import make_url

from chatkeep.conformance.harness import Form
from tests.conformance.relational_harness import RelationalHarness
from tests.faults.engines import ENGINES, SERVERS, harness_of, marked
from tests.proxy import Proxy

pytest.register_assert_rewrite("tests.faults.invariants")


@pytest.fixture(scope="module", params=marked(*ENGINES))
def harness(request: pytest.FixtureRequest) -> Iterator[RelationalHarness]:
    """Each SQL engine in turn."""
    harness = harness_of(request.param)
    yield harness
    harness.close()


@pytest.fixture(scope="module", params=marked(*SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[RelationalHarness]:
    """Each engine that has a server, in turn."""
    harness = harness_of(request.param)
    yield harness
    harness.close()


@pytest.fixture
def url(harness: RelationalHarness) -> Iterator[str]:
    """A database of this test's own, on each engine."""
    url = harness.fresh_url()
    yield url
    harness.drop(url)


@pytest.fixture(scope="module")
def database(server: RelationalHarness) -> Iterator[str]:
    """A database that the tests of a module share, on each server: each test uses a conversation of its own."""
    url = server.fresh_url()
    yield url
    server.drop(url)


@pytest.fixture
def proxy(database: str) -> Iterator[Proxy]:
    """Between this test and the server."""
    proxy = Proxy(make_url(database))
    yield proxy
    proxy.close()


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> Form:
    """Both forms of the repository; `harness.open` gives either one the methods of the synchronous one."""
    form: Form = request.param
    return form
