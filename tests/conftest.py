"""Markers by backend, the report of what ran where, the size of property tests, and the end of started servers."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import services

EXAMPLES = "CHATKEEP_TEST_EXAMPLES"
"""How many examples a property test tries; more find rarer faults and take longer."""

settings.register_profile(
    "chatkeep",
    max_examples=int(os.environ.get(EXAMPLES, "25")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("chatkeep")


def pytest_configure(config: pytest.Config) -> None:
    for backend in services.BACKENDS:
        config.addinivalue_line("markers", f"{backend}: what runs on this backend; `pytest -m {backend}` is its tests")
    services.required_backends()  # refuses an unknown name at once, not at the end of a run that required nothing


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        # All of a backend in one process, so that its server is started once, and what a test counts there is its own.
        backend = next((name for name in services.BACKENDS if item.get_closest_marker(name)), None)
        item.add_marker(pytest.mark.xdist_group(backend or item.location[0]))


def pytest_sessionfinish(session: pytest.Session) -> None:
    services.stop_services()
    if hasattr(session.config, "workeroutput"):  # one of several processes: to where the report is printed
        session.config.workeroutput["services"] = services.notes()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    services.add_notes(getattr(node, "workeroutput", {}).get("services", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("backends", sep="=")
    for line in services.report_lines():
        terminalreporter.write_line(line)
