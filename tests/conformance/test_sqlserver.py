"""The contract on SQL Server."""

import pytest

from chatkeep.conformance import harness_fixture
from chatkeep.conformance.suite import *  # noqa: F403
from tests.conformance.sqlserver_harness import SqlserverHarness

pytestmark = pytest.mark.sqlserver
harness = harness_fixture(SqlserverHarness)
