"""Where a run takes place: a fresh namespace, made and dropped by the harness that the backend's tests use."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy.engine import make_url

if TYPE_CHECKING:
    from chatkeep.conformance import Harness

BACKENDS = ("inprocess", "sqlite", "postgresql", "mysql", "mariadb", "sqlserver")
"""Each has a harness in tests/conformance."""


class NoPlaceError(Exception):
    """There is no such backend or server here; the text says why."""


class Place:
    """A namespace of the harness."""

    def __init__(self, harness: Harness, url: str) -> None:
        self._harness = harness
        self.url = url

    @property
    def shared_between_processes(self) -> bool:
        return self._harness.expected_capabilities.shared_between_processes

    def why_no_kill(self) -> str | None:
        """Why sessions can't be killed here, or None where they can."""
        return self._harness.cannot.get("kill_sessions")

    def kill_sessions(self) -> None:
        """Ends all sessions of the namespace on the server, as an administrator does."""
        self._harness.kill_sessions(self.url)

    def left_open(self, patience: float = 5.0) -> str:
        """After everything was closed: what is still open, or nothing. A server takes a moment to notice."""
        ends = time.monotonic() + patience
        while left := self._left_open():
            if time.monotonic() > ends:
                return left
            time.sleep(0.05)
        return ""

    def _left_open(self) -> str:
        if "count_sessions" not in self._harness.cannot:
            sessions = self._harness.count_sessions(self.url)
            return f"{sessions} sessions on the server" if sessions else ""
        if self._harness.backend == "sqlite":
            # The last connection to close a file takes its write-ahead log away.
            log = Path(f"{make_url(self.url).database}-wal")
            return "a connection to the file, whose write-ahead log is still there" if log.exists() else ""
        return ""


@contextlib.contextmanager
def open_place(backend: str, url: str | None = None, options: dict[str, str] | None = None) -> Iterator[Place]:
    """A fresh namespace on the server of `url`, of CHATKEEP_TEST_<BACKEND>_URL, or in a container; dropped at the end.

    `options` are those of the repository's URL. Raises NoPlaceError where there is no such server.
    """
    harness = _harness(backend, url)
    with contextlib.closing(harness):
        fresh = harness.fresh_url()
        try:
            plain = make_url(fresh).update_query_dict(options) if options else fresh
            yield Place(harness, plain if isinstance(plain, str) else plain.render_as_string(hide_password=False))
        finally:
            harness.drop(fresh)


def _harness(backend: str, url: str | None) -> Harness:
    try:
        services = importlib.import_module("tests.services")
        module = importlib.import_module(f"tests.conformance.{backend}_harness")
    except ImportError as error:
        raise NoPlaceError(f"{backend} has no harness here: {error}") from error
    if url is not None:
        if backend in services.SERVERLESS:
            raise NoPlaceError(f"{backend} needs no server, so no URL")
        os.environ[services.override_variable(backend)] = url
    service = services.service_url(backend)
    if not service.available:
        raise NoPlaceError(service.reason)
    for _, found in inspect.getmembers(module, inspect.isclass):
        if found.__module__ == module.__name__ and getattr(found, "backend", None) == backend:
            return cast("Harness", found())
    raise NoPlaceError(f"{module.__name__} has no harness of {backend}")
