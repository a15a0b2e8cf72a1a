"""A backend's name is spelled once: module, schema folder, service, extra, marker and page all follow from it."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from chatkeep.backends.plugin import BackendPlugin
from chatkeep.registry import BUILTIN, GROUP, find_backend
from tests import services

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
NO_BACKEND = {"all", "conformance"}
"""Extras that are none: everything, and what the shipped suite needs."""

PLUGINS: dict[str, BackendPlugin] = {name: find_backend(name) for name in BUILTIN}
SERVERS = {name for name, plugin in PLUGINS.items() if not plugin.embedded}
WITH_SCHEMA = {name for name, plugin in PLUGINS.items() if plugin.migrations is not None}


def names_of_services() -> set[str]:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    section = re.split(r"^services:$", text, flags=re.MULTILINE)[1]
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    return set(re.findall(r"^  ([A-Za-z0-9_.-]+):", section, flags=re.MULTILINE))


@pytest.mark.parametrize("name", BUILTIN)
def test_a_plugin_has_the_name_that_the_registry_gives_it(name: str) -> None:
    assert PLUGINS[name].name == name
    assert PLUGINS[name].schemes[0] == name
    # backends/<family>/<name>.py or backends/<name>/
    assert name in BUILTIN[name].partition(":")[0].split(".")


def test_the_entry_points_are_the_registrys() -> None:
    assert PROJECT["project"]["entry-points"][GROUP] == BUILTIN


def test_every_backend_with_a_driver_has_an_extra_of_its_name() -> None:
    extras = {name for name in EXTRAS if name not in NO_BACKEND and name in {*BUILTIN, *names_of_services()}}
    assert extras == set(BUILTIN) - {"inprocess"}


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_an_extra_installs_what_its_backend_imports(name: str) -> None:
    required = {re.split(r"[\[<>=~!; ]", requirement)[0].lower() for requirement in EXTRAS[name]}
    assert required >= set(PLUGINS[name].drivers)


def test_all_means_all_backends() -> None:
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"[a-z0-9_]+", everything.partition("[")[2])) >= set(BUILTIN) - {"inprocess"}


def test_every_server_has_a_service_of_its_name() -> None:
    assert names_of_services() >= SERVERS
    assert {re.sub(r"[0-9_-]+$", "", service) for service in names_of_services()} == SERVERS


def test_every_backend_with_tables_has_a_folder_of_schema_files() -> None:
    assert {path.name for path in (ROOT / "schemas").iterdir() if path.is_dir()} == WITH_SCHEMA
    for name in WITH_SCHEMA:
        files = sorted(path.name for path in (ROOT / "schemas" / name).iterdir())
        assert files, name
        vectors = [file for file in files if file == "vectors"]
        assert bool(vectors) == (PLUGINS[name].vector_migrations is not None), name
        files = [file for file in files if file != "vectors"]
        assert all(re.fullmatch(r"V\d{4}__[a-z0-9_]+\.(sql|cql|cypher)", file) for file in files), files


def test_the_tests_know_the_same_backends() -> None:
    assert set(services.BACKENDS) == set(BUILTIN)


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_the_address_of_a_server_comes_from_a_variable_of_its_name(name: str) -> None:
    # CHATKEEP_TEST_<NAME>_URL: a name must be able to stand in a variable.
    assert re.fullmatch(r"[a-z][a-z0-9]*", name)


@pytest.mark.parametrize("name", BUILTIN)
def test_every_backend_has_a_page_of_its_name(name: str) -> None:
    page = (ROOT / "docs" / "backends" / f"{name}.md").read_text(encoding="utf-8")
    assert f"{name}:" in page
    for option in PLUGINS[name].options:
        assert f"`{option.name}`" in page, f"docs/backends/{name}.md does not mention the option {option.name}"
    for driver in PLUGINS[name].drivers:
        assert driver in page


@pytest.mark.parametrize("name", BUILTIN)
def test_the_readme_and_the_configuration_page_lead_to_every_page(name: str) -> None:
    (row,) = [
        line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if f"/{name}.md) |" in line
    ]
    assert f"`{name}:" in row
    assert name not in SERVERS or f"chatkeep[{name}]" in row
    assert f"(backends/{name}.md)" in (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_every_page_is_of_a_backend() -> None:
    assert {path.stem for path in (ROOT / "docs" / "backends").glob("*.md")} == set(BUILTIN)
