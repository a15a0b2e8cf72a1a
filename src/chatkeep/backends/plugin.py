"""What a backend tells the registry: its schemes, options and how to open it. Importing one imports no driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from sqlalchemy.engine import URL

from chatkeep.migrations.target import Target
from chatkeep.storage.backend import Backend


class OpenRequest(msgspec.Struct, frozen=True):
    """A URL and options that the configuration has checked and converted."""

    url: URL
    options: Mapping[str, Any]
    """By name, converted by the option's `parse`; only what was given."""
    schema: str
    """`migrate`, `validate` or `ignore`; "auto" is resolved before."""
    asynchronous: bool


class Option(msgspec.Struct, frozen=True):
    """One option of a backend, in the URL's query, as a keyword or in a configuration file."""

    name: str
    parse: Callable[[Any], Any]
    """Converts text or a Python value; raises ValueError with what was expected."""
    help: str


class BackendPlugin(msgspec.Struct, frozen=True):
    """A backend as the entry-point group `chatkeep.backends` names it."""

    name: str
    schemes: tuple[str, ...]
    """URL schemes without `+driver`."""
    open: Callable[[OpenRequest], Backend]
    """Builds the backend without I/O: connections are opened by the first verb."""
    options: tuple[Option, ...] = ()
    drivers: tuple[str, ...] = ()
    """Names allowed after `+`, for the sync and the async form alike; empty: none."""
    embedded: bool = False
    """Whether schema="auto" migrates (an engine inside the process) or validates (a server)."""
    migrations: Callable[[OpenRequest, Backend | None], Target] | None = None
    """The migration target of a URL, over the backend's own connections where it is open; None without a schema.
    Always synchronous: the async open runs it in a thread."""
    vector_migrations: Callable[[OpenRequest, Backend | None], Target] | None = None
    """The same for the optional tables of vectors; None where the backend has none."""
