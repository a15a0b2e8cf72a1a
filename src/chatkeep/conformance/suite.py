"""Everything a backend's test module imports: `from chatkeep.conformance.suite import *`.

The classes of all rules that concern a repository, and the fixtures they use. A module may replace a class by a
subclass of its own of the same name, to add to a test what only its engine can show; to leave one out is noticed.
"""

# ruff: noqa: F401, F403
from chatkeep.conformance import fixtures
from chatkeep.conformance.contract import (
    c01_order,
    c02_atomic_replace,
    c03_no_lost_append,
    c04_idempotence,
    c07_log_is_whole,
    c08_lossless,
    c09_types,
    c10_safe_loading,
    c11_nothing_cut,
    c12_any_str,
    c13_identity,
)
from chatkeep.conformance.fixtures import *

RULES = (
    c01_order,
    c02_atomic_replace,
    c03_no_lost_append,
    c04_idempotence,
    c07_log_is_whole,
    c08_lossless,
    c09_types,
    c10_safe_loading,
    c11_nothing_cut,
    c12_any_str,
    c13_identity,
)

CLASSES = {name: found for module in RULES for name, found in vars(module).items() if name.startswith("TestC")}
globals().update(CLASSES)

__all__ = [*fixtures.FIXTURES, *CLASSES]
