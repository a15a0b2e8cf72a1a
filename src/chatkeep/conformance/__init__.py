"""The contract as a pytest suite: what every backend must keep, shipped so that any backend can prove itself.

A backend's whole test module is its harness and two more lines::

    import pytest
    from chatkeep.conformance import harness_fixture
    from chatkeep.conformance.suite import *

    harness = harness_fixture(MyHarness)
    pytestmark = pytest.mark.mybackend

`Harness` tells the suite how to make a namespace, how to look behind the backend, and what it can't do and why. One
text of each test runs on the synchronous and on the asynchronous repository (see blocking.py).
"""

import pytest

# Before the first import of what holds the assertions, so that their failures show the values.
pytest.register_assert_rewrite("chatkeep.conformance.contract", "chatkeep.conformance.support")

from chatkeep.conformance.fixtures import harness_fixture  # noqa: E402
from chatkeep.conformance.harness import Harness, needs  # noqa: E402
from chatkeep.conformance.own_store import StoreHarness  # noqa: E402

__all__ = ["Harness", "StoreHarness", "harness_fixture", "needs"]
