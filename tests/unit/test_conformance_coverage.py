"""A suite that is not run proves nothing: every rule has a class, and every backend's module collects all of them."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatkeep.capabilities import Capabilities
from chatkeep.conformance import Harness
from chatkeep.conformance.suite import CLASSES
from chatkeep.registry import BUILTIN
from tests.conformance.inprocess_harness import InProcessHarness
from tests.conformance.mariadb_harness import MariadbHarness
from tests.conformance.mysql_harness import MysqlHarness
from tests.conformance.postgresql_harness import PostgresqlHarness
from tests.conformance.sqlite_harness import SqliteHarness
from tests.conformance.sqlserver_harness import SqlserverHarness

HARNESSES: tuple[type[Harness], ...] = (
    InProcessHarness,
    SqliteHarness,
    PostgresqlHarness,
    MysqlHarness,
    MariadbHarness,
    SqlserverHarness,
)

RULES = range(1, 25)

FEWER: dict[str, dict[str, str]] = {}
"""By backend, the tests that its module leaves out, each with the reason."""

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def collected() -> dict[str, set[str]]:
    """By backend, what pytest collects in its module, without the form and other parameters."""
    modules = [str(ROOT / "tests" / "conformance" / f"test_{backend}.py") for backend in BUILTIN]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *modules],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found: dict[str, set[str]] = {backend: set() for backend in BUILTIN}
    for backend, test in re.findall(r"tests/conformance/test_(\w+)\.py::([^\[\n]+)", done.stdout):
        found[backend].add(test)
    return found


def suite_tests() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each test of the suite with what it needs of a harness."""
    for name, found in CLASSES.items():
        for method, function in vars(found).items():
            if method.startswith("test_"):
                needs = getattr(found, "contract_needs", ()) + getattr(function, "contract_needs", ())
                yield f"{name}::{method}", needs


def test_every_rule_has_a_class() -> None:
    """Those of memories and advisors too: they hold on every backend."""
    covered = {int(match[1]) for name in CLASSES if (match := re.match(r"TestC(\d\d)\w", name))}
    assert covered == set(RULES)


def test_every_class_is_in_the_suite() -> None:
    """A module with tests that nobody lists would never run."""
    folder = ROOT / "src" / "chatkeep" / "conformance" / "contract"
    written = {name for file in folder.glob("*.py") for name in re.findall(r"^class (Test\w+)", file.read_text(), re.M)}
    assert set(CLASSES) == written


def test_every_shipped_backend_has_a_harness() -> None:
    """Beside those that people bring."""
    assert {harness.backend for harness in HARNESSES} == set(BUILTIN)


@pytest.mark.parametrize("backend", BUILTIN)
def test_every_backend_collects_the_whole_suite(collected: dict[str, set[str]], backend: str) -> None:
    """Except for what it leaves out with a reason, and what it adds."""
    whole = {test for test, _ in suite_tests()}
    assert whole - collected[backend] == set(FEWER.get(backend, {}))


def test_every_test_runs_on_some_backend() -> None:
    """Where no harness has what a test needs, it has never run."""

    def met(harness: type[Harness], name: str) -> bool:
        if name in Capabilities.__struct_fields__:
            return bool(getattr(harness.expected_capabilities, name))
        return name not in harness.cannot

    never = [test for test, needs in suite_tests() if not any(all(met(h, name) for name in needs) for h in HARNESSES)]
    assert never == []


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.backend)
def test_every_ability_is_there_or_excused(harness: type[Harness]) -> None:
    """Never both and never neither: a forgotten ability would fail in the middle of a test."""
    for name, ability in vars(Harness).items():
        if inspect.isfunction(ability) and "self._undeclared(" in inspect.getsource(ability):
            implemented = getattr(harness, name) is not ability
            assert implemented != (name in harness.cannot), name


def test_every_test_says_what_it_shows() -> None:
    """A sentence as its name and a docstring under it."""
    for name, found in CLASSES.items():
        assert found.__doc__, name
        for method, function in vars(found).items():
            if method.startswith("test_"):
                assert function.__doc__, f"{name}::{method}"
                assert method.count("_") >= 3, f"{name}::{method}"
