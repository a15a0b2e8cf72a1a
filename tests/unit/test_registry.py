"""Which backends there are, and that another one can't take their names."""

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import pytest

from chatkeep import ConfigurationError, registry
from chatkeep.backends.plugin import BackendPlugin
from chatkeep.registry import BUILTIN, find_backend, register_backend


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", {})
    return


def plugin(name: str, *schemes: str) -> BackendPlugin:
    def refuse(_: Any) -> Any:
        raise AssertionError("opened")

    return BackendPlugin(name=name, schemes=schemes or (name,), open=refuse)


@pytest.mark.parametrize("name", BUILTIN)
def test_every_shipped_backend_is_found_by_its_name(name: str) -> None:
    found = find_backend(name)
    assert found.name == name
    assert name in found.schemes
    assert all(find_backend(scheme) is found for scheme in found.schemes)


def test_an_unknown_scheme_lists_every_known_one() -> None:
    register_backend(plugin("mine"))
    with pytest.raises(ConfigurationError) as caught:
        find_backend("nothing")
    for name in (*BUILTIN, "mine"):
        assert name in str(caught.value)


def test_a_registered_backend_is_found_by_all_its_schemes() -> None:
    mine = plugin("mine", "mine", "ours")
    register_backend(mine)
    register_backend(mine)  # twice is once
    assert find_backend("mine") is find_backend("ours") is mine


@pytest.mark.parametrize("taken", [plugin("sqlite"), plugin("mine", "postgresql"), plugin("inprocess", "x")])
def test_the_names_of_shipped_backends_are_taken(taken: BackendPlugin) -> None:
    with pytest.raises(ConfigurationError, match="belongs to"):
        register_backend(taken)


def test_the_names_of_registered_backends_are_taken() -> None:
    register_backend(plugin("mine", "mine", "ours"))
    for taken in (plugin("mine", "x"), plugin("yours", "ours"), plugin("ours")):
        with pytest.raises(ConfigurationError, match="belongs to 'mine'"):
            register_backend(taken)


def entry_points(monkeypatch: pytest.MonkeyPatch, **found: Any) -> None:
    class Point:
        def __init__(self, name: str, value: Any) -> None:
            self.name, self.value = name, value

        def load(self) -> Any:
            return self.value

    points = [Point(name, value) for name, value in found.items()]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == registry.GROUP else [])


def test_an_entry_point_is_found_and_cannot_replace_a_shipped_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = plugin("theirs", "theirs", "sqlite")
    entry_points(monkeypatch, theirs=theirs, inprocess=plugin("inprocess"))
    assert find_backend("theirs") is theirs
    assert find_backend("sqlite").name == "sqlite"
    assert find_backend("inprocess").open is not theirs.open


def test_an_entry_point_that_is_no_plugin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points(monkeypatch, theirs=object())
    with pytest.raises(ConfigurationError, match="'theirs'"):
        find_backend("theirs")
