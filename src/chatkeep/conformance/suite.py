"""Everything a backend's test module imports: `from chatkeep.conformance.suite import *`.

The classes of all rules that concern a repository, and the fixtures they use. A module may replace a class by a
subclass of its own of the same name, to add to a test what only its engine can show; to leave one out is noticed.
"""

# ruff: noqa: F403
import importlib
import pkgutil

from chatkeep.conformance import contract, fixtures
from chatkeep.conformance.fixtures import *

MODULES = tuple(
    importlib.import_module(f"{contract.__name__}.{module.name}") for module in pkgutil.iter_modules(contract.__path__)
)
"""Every module of the contract, so that none can be forgotten."""

CLASSES = {
    name: found
    for module in MODULES
    for name, found in vars(module).items()
    if name.startswith("Test") and found.__module__ == module.__name__
}
globals().update(CLASSES)

__all__ = [*fixtures.FIXTURES, *CLASSES]
