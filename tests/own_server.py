"""A server that a test may break: a container of its own, of docker-compose.yml's making, apart from those others use.

It keeps its port and its data while it is killed and started again, as a server does that comes back after a crash.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from sqlalchemy.engine import URL

from tests import services
from tests.servers import SERVERS

SECONDS = 120.0
"""How long Docker may take for anything."""


class OwnServer:
    """Running from the start; `stop` removes it with its data.

    `tmpfs`: folders of the container that lie in memory, with their mount options. `arguments`: what the server is
    started with beside what docker-compose.yml gives it.
    """

    def __init__(
        self, backend: str, purpose: str, *, tmpfs: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
    ) -> None:
        self.backend = backend
        # Also for the report of the run, and for a quick answer where the image can't be had.
        found = services.service_url(backend)
        if reason := found.reason or services.why_no_containers():
            self._skip(reason)
        self._folder = tempfile.TemporaryDirectory(prefix="chatkeep-")
        self._environment = {**os.environ, f"{backend.upper()}_PORT": str(_free_port())}
        self._compose = ["docker", "compose", "--project-name", f"{services.project_name()}-{backend}-{purpose}"]
        self._compose += ["--file", str(services.REPOSITORY_ROOT / services.COMPOSE_FILE)]
        described = self._described()
        override = {
            "tmpfs": [f"{folder}:{options}" for folder, options in (tmpfs or {}).items()],
            "command": [*(described.get("command") or ()), *arguments] or None,
        }
        # Compose reads YAML, of which JSON is a part.
        file = Path(self._folder.name) / "override.json"
        file.write_text(json.dumps({"services": {backend: override}}), encoding="utf-8")
        self._compose += ["--file", str(file)]
        try:
            started = self._try(*self._compose, "up", "--wait", "--no-build", backend)
            if started.returncode:
                self._skip(started.stderr.strip()[-1000:])
            self.container = self._run(*self._compose, "ps", "--quiet", backend)
            self.url = self._address(described["environment"])
            services.wait_until_ready(self.url, SERVERS[backend].probe)
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """As a crash or the kernel's memory killer ends it: at once."""
        self._run("docker", "kill", "--signal", "KILL", self.container)

    def shut_down(self) -> None:
        """As an administrator ends it: with notice."""
        self._run("docker", "stop", "--time", "20", self.container)

    def start(self) -> None:
        """On the same port, with the same data. Returns before the server is ready."""
        self._run("docker", "start", self.container)

    def shell(self, command: str) -> str:
        """What a command of root's in the container prints."""
        return self._run("docker", "exec", "--user", "root", self.container, "sh", "-ec", command)

    def stop(self) -> None:
        self._run(*self._compose, "down", "--volumes", "--timeout", "0")
        self._folder.cleanup()

    def _described(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self._run(*self._compose, "config", "--format", "json"))
        found: dict[str, Any] = config["services"][self.backend]
        return found

    def _address(self, environment: Mapping[str, str]) -> URL:
        port = self._environment[f"{self.backend.upper()}_PORT"]
        return SERVERS[self.backend].address(environment, "127.0.0.1", int(port))

    def _skip(self, reason: str) -> NoReturn:
        # A server that CHATKEEP_TEST_…_URL names is not ours to kill, so it doesn't count here.
        if self.backend in services.required_backends():
            services.skip_or_fail(self.backend, reason)
        pytest.skip(f"{self.backend}: no server of the test's own: {reason}")

    def _try(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=SECONDS)

    def _run(self, *command: str) -> str:
        done = self._try(*command)
        if done.returncode:
            pytest.fail(f"'{' '.join(command[-4:])}' failed: {done.stderr.strip()[-2000:]}", pytrace=False)
        return done.stdout.strip()


def _free_port() -> int:
    """Chosen here and not by Docker, which would choose another one at each start."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
