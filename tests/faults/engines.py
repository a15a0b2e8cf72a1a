"""The SQL engines under fault. One text of a test serves them all; a new engine is one entry here, and one in
tests/proxy.py, tests/faults/test_restarts.py and tests/faults/test_full_disks.py where it has a server."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.conformance.relational_harness import RelationalHarness

SQLITE = "sqlite"
SERVERS = ("postgresql", "mysql", "mariadb", "sqlserver")
ENGINES = (SQLITE, *SERVERS)


def marked(*names: str) -> list[Any]:
    """Parameters of a fixture, each with its backend's marker, so that `pytest -m mysql` is all of MySQL."""
    return [pytest.param(name, marks=getattr(pytest.mark, name)) for name in names]


def harness_of(name: str) -> RelationalHarness:
    """What makes namespaces on an engine. Skips where there is no server, and fails where one is required."""
    # Late, for it imports the driver.
    module = importlib.import_module(f"tests.conformance.{name}_harness")
    harness: RelationalHarness = getattr(module, f"{name.capitalize()}Harness")()
    return harness
