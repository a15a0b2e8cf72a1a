"""The documents: every relative link leads somewhere, and the contract names every class of the suite."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from chatkeep import config
from chatkeep.registry import BUILTIN, find_backend

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:|#", target):
            assert (document.parent / target.partition("#")[0]).exists(), target


def test_the_contract_names_every_class_of_the_suite() -> None:
    from chatkeep.conformance.suite import CLASSES

    text = (ROOT / "docs/contract.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"`(Test\w+)`", text))) == sorted(CLASSES)


@pytest.mark.parametrize("backend", sorted(BUILTIN))
def test_a_backends_page_names_all_its_options(backend: str) -> None:
    page = (ROOT / f"docs/backends/{backend}.md").read_text(encoding="utf-8")
    for option in find_backend(backend).options:
        assert f"`{option.name}`" in page


def test_the_configuration_page_names_all_common_options() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    for option in config.COMMON:
        assert f"`{option.name}`" in page


def test_the_changelog_and_the_package_agree_on_the_version() -> None:
    import chatkeep

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == chatkeep.__version__
