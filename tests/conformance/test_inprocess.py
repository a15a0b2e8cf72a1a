"""The contract on the in-process backend: the reference, and what runs everywhere."""

import pytest

from chatkeep.conformance import harness_fixture
from chatkeep.conformance.suite import *  # noqa: F403
from tests.conformance.inprocess_harness import InProcessHarness

pytestmark = pytest.mark.inprocess
harness = harness_fixture(InProcessHarness)
