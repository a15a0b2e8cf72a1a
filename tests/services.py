"""The one place where tests meet servers: hands out the address of a server that answers, or says why there is none.

An existing server is used where `CHATKEEP_TEST_<BACKEND>_URL` is set; else docker-compose.yml's container is started,
once for the whole run, and removed at its end. It knows no image, port or password (docker-compose.yml does) and makes
no tables. It must not import chatkeep, so that a broken product cannot look like a missing server.
"""

import atexit
import functools
import importlib.util
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tests.servers import SERVERS, Server, WrongServerError, masked

if TYPE_CHECKING:
    from testcontainers.compose import DockerCompose

READY_WITHIN = 60.0
"""Seconds a server may take until it answers its first query; a container's own health check comes before that."""

REPOSITORY_ROOT = Path(__file__).resolve().parent.parent
COMPOSE_FILE = "docker-compose.yml"
REQUIRE_BACKENDS = "REQUIRE_BACKENDS"
_LOG_LINES = 15


class NotReadyError(Exception):
    """A server gave no answer in the time it had; the text says which, for how long, and what it said last."""


@dataclass(frozen=True)
class ServiceResult:
    """What a backend's tests have to work with: everything but `reason`, or nothing but `reason`."""

    backend: str
    url: str | None = None
    """The administrator's address, password included; None for a backend that needs no server."""

    version: str | None = None
    origin: str | None = None
    """Where the server came from, for people to read."""

    reason: str | None = None
    """Why there is no server; it holds no password."""

    @property
    def available(self) -> bool:
        return self.reason is None


SERVERLESS: dict[str, str] = {
    "inprocess": "no server",
    "sqlite": f"SQLite {sqlite3.sqlite_version}",
}
"""The backends that run inside the test process, with what the report calls their version."""

BACKENDS = (*SERVERLESS, *SERVERS)

_running: "list[DockerCompose]" = []
_notes: dict[str, str] = {}
_SKIPPED, _FAILED = "skipped: ", "FAILED: "


# -- what tests and conftest.py call -------------------------------------------------------------------------------


def service_url(backend: str) -> ServiceResult:
    """The server of a backend, started if need be. The first call may take a minute, every later one is free."""
    result = _service(backend)
    # A reason given through skip_or_fail says more than "was available", so it stays.
    _notes.setdefault(backend, _note(result))
    return result


def skip_or_fail(backend: str, reason: str) -> NoReturn:
    """Skips the test, or fails it where someone counts on this backend."""
    why_required = _why_required(backend)
    if why_required is None:
        _notes[backend] = f"{_SKIPPED}{reason}"
        pytest.skip(f"{backend}: {reason}")
    _notes[backend] = f"{_FAILED}{reason}"
    pytest.fail(f"{backend} is required ({why_required}) but cannot be used: {reason}", pytrace=False)


def report_lines() -> list[str]:
    """By backend, what ran on which server, or why it did not: for the end of a test run."""
    required = required_backends()
    width = max(map(len, BACKENDS))
    lines = []
    for backend in BACKENDS:
        note = _notes.get(backend, "not used by the chosen tests")
        if backend in required:
            note += f" ({REQUIRE_BACKENDS} names it)"
        lines.append(f"{backend:<{width}}  " + note.replace("\n", "\n" + " " * (width + 2)))
    return lines


def notes() -> dict[str, str]:
    """By backend that was used, what `report_lines` says of it."""
    return dict(_notes)


def add_notes(of: Mapping[str, str]) -> None:
    """Take over the notes of another process of the same run. That something was missing stands before all else."""
    for backend, note in of.items():
        if backend not in _notes or note.startswith((_SKIPPED, _FAILED)):
            _notes[backend] = note


def stop_services() -> None:
    """Removes every container started here, with its data. Harmless to call twice."""
    if _running:
        # They are one compose project, so any of them stands for all; with service names given, `down` would leave the
        # project's network behind.
        compose = _running[-1]
        _running.clear()
        compose.services = None
        compose.stop()
    _service.cache_clear()


def required_backends() -> frozenset[str]:
    """The backends whose skip is a failure. A misspelt one would require nothing, so it is refused."""
    names = frozenset(name.strip() for name in os.environ.get(REQUIRE_BACKENDS, "").split(",") if name.strip())
    if unknown := sorted(names.difference(BACKENDS)):
        raise pytest.UsageError(
            f"{REQUIRE_BACKENDS} names {', '.join(unknown)}; the backends known here are {', '.join(BACKENDS)}"
        )
    return names


def override_variable(backend: str) -> str:
    """The environment variable that points the tests at a server that already runs."""
    return f"CHATKEEP_TEST_{backend.upper()}_URL"


def wait_until_ready(url: URL, probe: Callable[[URL, float], str], *, within: float = READY_WITHIN) -> str:
    """Asks until a real query is answered and returns the server's version; `NotReadyError` when the time is over."""
    began = time.monotonic()
    attempts = 0
    while True:
        left = within - (time.monotonic() - began)
        attempts += 1
        try:
            return probe(url, max(min(5.0, left), 1.0))
        except WrongServerError as error:
            raise NotReadyError(str(error)) from None
        except Exception as error:  # each driver has its own tree of errors
            last = f"{type(error).__name__}: {error}"
        if within - (time.monotonic() - began) < 0.2:
            waited = time.monotonic() - began
            raise NotReadyError(
                f"no answer from {masked(url)} to a query within {waited:.0f} s ({attempts} attempts); "
                f"the last one ended in {_without_password(last, url)}"
            )
        time.sleep(0.2)


# -- how a server is found -----------------------------------------------------------------------------------------


@functools.cache
def _service(backend: str) -> ServiceResult:
    return find_service(backend)


def find_service(backend: str, *, within: float = READY_WITHIN) -> ServiceResult:
    """What `service_url` remembers: looks for the server anew at each call."""
    if backend in SERVERLESS:
        return ServiceResult(backend, version=SERVERLESS[backend], origin="this process")
    if backend not in SERVERS:
        raise ValueError(f"unknown backend {backend!r}; the backends known here are {', '.join(BACKENDS)}")
    server = SERVERS[backend]
    if importlib.util.find_spec(server.driver) is None:
        return ServiceResult(backend, reason=f"its driver is not installed: pip install 'chatkeep[{backend}]'")
    if override := os.environ.get(override_variable(backend)):
        return _existing_service(backend, server, override, within)
    if reason := why_no_containers():
        return ServiceResult(backend, reason=reason)
    return _container_service(backend, server, within)


def _existing_service(backend: str, server: Server, override: str, within: float) -> ServiceResult:
    variable = override_variable(backend)
    try:
        url = make_url(override)
    except (ArgumentError, ValueError):
        # Without the cause: its text may quote the URL.
        return ServiceResult(backend, reason=f"{variable} does not hold a URL")
    try:
        version = wait_until_ready(url, server.probe, within=within)
    except NotReadyError as error:
        return ServiceResult(backend, reason=f"{variable}: {error}")
    return ServiceResult(backend, url=override, version=version, origin=f"{masked(url)} ({variable})")


def why_no_containers() -> str | None:
    """What is missing on this machine to start one; None where nothing is."""
    if importlib.util.find_spec("testcontainers") is None:
        return "testcontainers is not installed"
    if shutil.which("docker") is None:
        return "there is no docker command"
    for what, command in (
        ("no Docker engine answers", ["docker", "info", "--format", "{{.ServerVersion}}"]),
        ("Docker has no compose plugin", ["docker", "compose", "version"]),
    ):
        try:
            asked = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        except subprocess.TimeoutExpired:
            return f"{what} (no reply to '{' '.join(command)}' within 30 s)"
        if asked.returncode != 0:
            return f"{what} ({_last_lines(asked.stderr, 1) or 'no reason given'})"
    return None


def _container_service(backend: str, server: Server, within: float) -> ServiceResult:
    # The containers live exactly as long as this process wants them to; the reaper is one more image to pull.
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    os.environ["COMPOSE_PROJECT_NAME"] = project_name()  # read by compose itself

    from testcontainers.compose import DockerCompose

    compose = DockerCompose(REPOSITORY_ROOT, compose_file_name=COMPOSE_FILE, services=[backend], wait=True, pull=False)
    if not _running:
        atexit.register(stop_services)
    _running.append(compose)
    try:
        compose.start()
        described = _compose_config(compose)["services"][backend]
        host, port = compose.get_service_host_and_port(backend)
        url = server.address(described["environment"], str(host), int(port or 0))
        version = wait_until_ready(url, server.probe, within=within)
    except subprocess.CalledProcessError as error:
        # Compose's last line names the culprit: the image that cannot be pulled, the container that is unhealthy.
        said = _last_lines(error.stderr.decode(errors="replace"), 1)
        return ServiceResult(backend, reason=f"its container did not start: {said}{_container_log(compose, backend)}")
    except NotReadyError as error:
        return ServiceResult(backend, reason=f"{error}{_container_log(compose, backend)}")
    origin = f"container {described['image']}"
    return ServiceResult(backend, url=url.render_as_string(hide_password=False), version=version, origin=origin)


@functools.cache
def project_name() -> str:
    """One name per test run: two runs on one machine must not share, or remove, each other's servers."""
    prefix = os.environ.get("CHATKEEP_TEST_PROJECT", "chatkeep-test")
    return f"{prefix}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


def _compose_config(compose: "DockerCompose") -> dict[str, Any]:
    command = [*compose.docker_compose_command(), "config", "--format", "json"]
    printed = subprocess.run(command, cwd=compose.context, capture_output=True, check=True).stdout
    config: dict[str, Any] = json.loads(printed)
    return config


def _container_log(compose: "DockerCompose", backend: str) -> str:
    command = [*compose.docker_compose_command(), "logs", "--no-color", "--no-log-prefix"]
    command += ["--tail", str(_LOG_LINES), backend]
    log = subprocess.run(command, cwd=compose.context, capture_output=True, check=False).stdout
    lines = _last_lines(log.decode(errors="replace"), _LOG_LINES)
    return f"\nthe last lines of its log:\n{lines}" if lines else ""


# -- wording -------------------------------------------------------------------------------------------------------


def _why_required(backend: str) -> str | None:
    if backend in required_backends():
        return f"{REQUIRE_BACKENDS} names it"
    if os.environ.get(override_variable(backend)):
        return f"{override_variable(backend)} is set"
    return None


def _note(result: ServiceResult) -> str:
    if result.available:
        return f"ran: {result.version}, {result.origin}"
    return f"not available: {result.reason}"


def _without_password(text: str, url: URL) -> str:
    return text.replace(str(url.password), "***") if url.password else text


def _last_lines(text: str, count: int) -> str:
    # Compose moves the cursor about even when nobody watches.
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return "\n".join([line.rstrip() for line in text.splitlines() if line.strip()][-count:])
