"""The contract on MySQL."""

import pytest

from chatkeep.conformance import harness_fixture
from chatkeep.conformance.suite import *  # noqa: F403
from tests.conformance.mysql_harness import MysqlHarness

pytestmark = pytest.mark.mysql
harness = harness_fixture(MysqlHarness)
