"""Markers by backend, the report of what ran where, the size of property tests, and the end of started servers."""

import os

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


def pytest_sessionfinish() -> None:
    services.stop_services()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("backends", sep="=")
    for line in services.report_lines():
        terminalreporter.write_line(line)
