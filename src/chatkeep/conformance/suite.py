"""Everything a backend's test module imports: `from chatkeep.conformance.suite import *`.

The classes of all rules that concern a repository, and the fixtures they use. A module may replace a class by a
subclass of its own of the same name, to add to a test what only its engine can show; to leave one out is noticed.
"""

# ruff: noqa: F403
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
    c14_time,
    c15_closing,
    c15_connections,
    c16_fresh_reads,
    c17_contention,
    c18_schema,
    c19_urls,
    c20_delete,
    c20_expiry,
    c20_purge,
    c21_injection,
    c21_owners,
    c23_bounded_cost,
    c24_ready,
    capability,
    directory,
)
from chatkeep.conformance.fixtures import *

MODULES = (
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
    c14_time,
    c15_closing,
    c15_connections,
    c16_fresh_reads,
    c17_contention,
    c18_schema,
    c19_urls,
    c20_delete,
    c20_expiry,
    c20_purge,
    c21_injection,
    c21_owners,
    c23_bounded_cost,
    c24_ready,
    capability,
    directory,
)

CLASSES = {
    name: found
    for module in MODULES
    for name, found in vars(module).items()
    if name.startswith("Test") and found.__module__ == module.__name__
}
globals().update(CLASSES)

__all__ = [*fixtures.FIXTURES, *CLASSES]
