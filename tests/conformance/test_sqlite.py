"""The contract on SQLite."""

import pytest

from chatkeep.conformance import harness_fixture
from chatkeep.conformance.suite import *  # noqa: F403
from tests.conformance.sqlite_harness import SqliteHarness

pytestmark = pytest.mark.sqlite
harness = harness_fixture(SqliteHarness)
