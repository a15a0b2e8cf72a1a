"""A test that can't fail is a defect: each mutant of a backend must be noticed by the tests that it names."""

import warnings

import pytest
from hypothesis.internal.conjecture import engine

from chatkeep.conformance.suite import CLASSES
from tests.conformance import inprocess_harness
from tests.unit import mutant_advisors, mutant_contents, mutant_memories, mutant_surroundings
from tests.unit.mutants import MUTANTS, Mutant, rules

assert mutant_advisors
assert mutant_contents
assert mutant_memories
assert mutant_surroundings  # their import fills MUTANTS

pytest_plugins = ["pytester"]

WITHOUT_MUTANT = {
    "TestC18Schema": "the in-process backend has no schema; tests/migrations breaks the migrations instead",
    "TestC20VectorsInTables": "the in-process backend has no such tables; tests/vectors breaks their rule instead",
    "TestC10BrokenDirectory": "its fault is of the core, and it was found by the test before it was mended",
    "TestC19Drivers": "runs in processes of its own, which no mutant reaches",
}
"""Classes that no mutant is made for, each with the reason."""

MODULE = """
from chatkeep.conformance import fixtures, harness_fixture
from chatkeep.conformance.fixtures import *
from chatkeep.conformance.suite import {classes}
from tests.conformance.inprocess_harness import InProcessHarness

harness = harness_fixture(InProcessHarness)
"""


def run(pytester: pytest.Pytester, tests: tuple[str, ...], *options: str) -> dict[str, list[str]]:
    """The outcome of each test in a run of its own, by `TestClass::test`."""
    assert inprocess_harness  # imported, so that the inner run finds it without the checkout's path
    file = pytester.makepyfile(test_mutant=MODULE.format(classes=", ".join(sorted(rules(tests)))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = pytester.inline_run(
            "-p",
            "no:cacheprovider",
            "-p",
            "no:asyncio",
            "-q",
            "--import-mode=importlib",
            *options,
            *(f"{file}::{test}" for test in tests),
        )
    outcomes: dict[str, list[str]] = {}
    for report in result.getreports("pytest_runtest_logreport"):
        name = report.nodeid.partition("::")[2].partition("[")[0]
        if report.when == "call" or report.failed:
            outcomes.setdefault(name, []).append(report.outcome)
    assert outcomes, "nothing was collected"
    return outcomes


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(mutant: Mutant, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """By every test that it names."""
    mutant.patch(monkeypatch)
    # Nobody reads the example, so it need not become small.
    monkeypatch.setattr(engine, "MAX_SHRINKING_SECONDS", 0)
    # Where one test must notice, the first failure is enough.
    outcomes = run(pytester, mutant.tests, "--maxfail=1" if len(mutant.tests) == 1 else "-q")
    for expected in mutant.tests:
        failed = [name for name, found in outcomes.items() if name.startswith(expected) and "failed" in found]
        assert failed, f"{expected} did not notice {mutant.name}"


def test_the_backend_as_it_is_passes_the_same_tests(pytester: pytest.Pytester) -> None:
    """So that it is the mutation that fails above, and not the way of running."""
    tests = tuple(dict.fromkeys(test for mutant in MUTANTS for test in mutant.tests if "::" in test))
    outcomes = run(pytester, tests)
    assert [name for name, found in outcomes.items() if "failed" in found or "passed" not in found] == []
    assert set(outcomes) == set(tests)


def test_every_class_has_a_mutant() -> None:
    """Or a reason why not, and no reason that is no longer needed."""
    with_mutant = rules([test for mutant in MUTANTS for test in mutant.tests])
    assert set(CLASSES) - with_mutant == set(WITHOUT_MUTANT)
    assert with_mutant <= set(CLASSES)
