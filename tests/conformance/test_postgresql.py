"""The contract on PostgreSQL."""

import pytest

from chatkeep.conformance import harness_fixture
from chatkeep.conformance.suite import *  # noqa: F403
from tests.conformance.postgresql_harness import PostgresqlHarness

pytestmark = pytest.mark.postgresql
harness = harness_fixture(PostgresqlHarness)
