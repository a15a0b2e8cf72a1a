"""Which backends there are: the shipped ones and those of the entry-point group `chatkeep.backends`."""

from __future__ import annotations

import importlib
import importlib.metadata

from chatkeep.backends.plugin import BackendPlugin
from chatkeep.errors import ConfigurationError
from chatkeep.forking import Lock

GROUP = "chatkeep.backends"
BUILTIN = {
    "inprocess": "chatkeep.backends.inprocess:BACKEND",
    "sqlite": "chatkeep.backends.relational.sqlite:BACKEND",
    "postgresql": "chatkeep.backends.relational.postgresql:BACKEND",
    "mysql": "chatkeep.backends.relational.mysql:BACKEND",
    "mariadb": "chatkeep.backends.relational.mariadb:BACKEND",
    "sqlserver": "chatkeep.backends.relational.sqlserver:BACKEND",
}
"""Named here too, so that they work where no package metadata is installed (a zip, a vendored copy)."""

_registered: dict[str, BackendPlugin] = {}
_lock = Lock()


def register_backend(plugin: BackendPlugin) -> None:
    """Make a backend known to this process. An entry point of the group `chatkeep.backends` does it for all.

    Raises ConfigurationError where another backend has the name or one of the schemes.
    """
    with _lock.now:
        for other in [*_registered.values(), *(_builtin(name) for name in BUILTIN)]:
            taken = {other.name, *other.schemes} & {plugin.name, *plugin.schemes}
            if taken and other is not plugin:
                raise ConfigurationError(f"backend {plugin.name!r}: {sorted(taken)[0]!r} belongs to {other.name!r}")
        _registered[plugin.name] = plugin


def find_backend(scheme: str) -> BackendPlugin:
    """The backend of a URL scheme; ConfigurationError lists the known ones."""
    known: dict[str, BackendPlugin] = {}
    for plugin in [*(_builtin(name) for name in BUILTIN), *_registered.values()]:
        known.update(dict.fromkeys(plugin.schemes, plugin))
    if scheme in known:
        return known[scheme]
    for plugin in _entry_points():
        for other in plugin.schemes:
            known.setdefault(other, plugin)
    if scheme in known:
        return known[scheme]
    raise ConfigurationError(f"unknown scheme {scheme!r}; known: {', '.join(sorted(known))}")


def _builtin(name: str) -> BackendPlugin:
    return _loaded(BUILTIN[name])


def _loaded(path: str) -> BackendPlugin:
    module, _, attribute = path.partition(":")
    plugin: BackendPlugin = getattr(importlib.import_module(module), attribute)
    return plugin


def _entry_points() -> list[BackendPlugin]:
    found = []
    for point in importlib.metadata.entry_points(group=GROUP):
        if point.name in BUILTIN:
            continue
        plugin = point.load()
        if not isinstance(plugin, BackendPlugin):
            raise ConfigurationError(f"entry point {point.name!r} of {GROUP} is no BackendPlugin")
        found.append(plugin)
    return found
