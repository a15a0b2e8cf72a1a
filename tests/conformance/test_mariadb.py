"""The contract on MariaDB."""

import pytest

from chatkeep.conformance import harness_fixture
from chatkeep.conformance.suite import *  # noqa: F403
from tests.conformance.mariadb_harness import MariadbHarness

pytestmark = pytest.mark.mariadb
harness = harness_fixture(MariadbHarness)
