"""How the tests find their servers: the bound of the wait, what its failures say, and what must never be printed."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import URL, make_url

from tests import services

SECRET = "hunter2-hunter2"


BY_SERVER = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in services.SERVERS]


def address_of(listener: socket.socket, backend: str = "postgresql") -> URL:
    return make_url(f"{backend}://someone:{SECRET}@127.0.0.1:{listener.getsockname()[1]}/somewhere")


@pytest.fixture
def silent_server(backend: str) -> Iterator[URL]:
    """Takes connections and never says a word, like a port mapping in front of a server that is still starting."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield address_of(listener, backend)


@pytest.fixture
def refusing_server() -> URL:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return address_of(taken)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The report of this test alone; what it notes does not reach the real one."""
    own: dict[str, str] = {}
    monkeypatch.setattr(services, "_notes", own)
    return own


@pytest.fixture
def answering_server(monkeypatch: pytest.MonkeyPatch, notes: dict[str, str]) -> URL:
    """A server that answers, found through its variable, without any server."""
    url = make_url(f"postgresql+psycopg://someone:{SECRET}@db.example:6543/somewhere?sslpassword={SECRET}")
    real = services.SERVERS["postgresql"]
    fake = services.Server(driver="psycopg", probe=lambda url, timeout: "PostgreSQL 99.9", address=real.address)
    monkeypatch.setitem(services.SERVERS, "postgresql", fake)
    monkeypatch.setenv("CHATKEEP_TEST_POSTGRESQL_URL", url.render_as_string(hide_password=False))
    return url


class TestWaiting:
    @pytest.mark.parametrize("backend", BY_SERVER)
    def test_a_server_that_never_answers_ends_the_wait_within_its_bound(self, backend: str, silent_server: URL) -> None:
        pytest.importorskip(services.SERVERS[backend].driver)
        began = time.monotonic()
        with pytest.raises(services.NotReadyError) as failure:
            services.wait_until_ready(silent_server, services.SERVERS[backend].probe, within=2)
        assert 1.5 < time.monotonic() - began < 4
        text = str(failure.value)
        assert f"127.0.0.1:{silent_server.port}" in text
        assert re.search("timeout|timed out", text)
        assert SECRET not in text

    def test_a_refused_port_is_tried_until_the_bound_and_named(self, refusing_server: URL) -> None:
        with pytest.raises(services.NotReadyError, match="refused") as failure:
            services.wait_until_ready(refusing_server, services.SERVERS["postgresql"].probe, within=1)
        assert SECRET not in str(failure.value)
        attempts = re.search(r"\((\d+) attempts\)", str(failure.value))
        assert attempts is not None
        assert int(attempts[1]) > 1

    def test_a_server_that_needs_a_moment_is_waited_for(self, refusing_server: URL) -> None:
        answers: list[str | Exception] = ["PostgreSQL 99.9", ConnectionError("starting"), ConnectionError("starting")]

        def probe(url: URL, timeout: float) -> str:
            answer = answers.pop()
            if isinstance(answer, Exception):
                raise answer
            return answer

        assert services.wait_until_ready(refusing_server, probe, within=10) == "PostgreSQL 99.9"

    def test_a_driver_that_quotes_the_password_is_not_repeated(self, refusing_server: URL) -> None:
        def probe(url: URL, timeout: float) -> str:
            raise ValueError(f"cannot read {url.render_as_string(hide_password=False)}")

        with pytest.raises(services.NotReadyError, match=r"cannot read .*\*\*\*") as failure:
            services.wait_until_ready(refusing_server, probe, within=0.1)
        assert SECRET not in str(failure.value)

    def test_a_server_of_another_kind_is_not_waited_for(self, refusing_server: URL) -> None:
        asked = []

        def probe(url: URL, timeout: float) -> str:
            asked.append(url)
            raise services.WrongServerError("MariaDB 99.9 answers, where MySQL is expected")

        with pytest.raises(services.NotReadyError, match=r"^MariaDB 99\.9 answers, where MySQL is expected$"):
            services.wait_until_ready(refusing_server, probe, within=10)
        assert len(asked) == 1


class TestExistingServer:
    def test_the_variable_wins_over_a_container(self, monkeypatch: pytest.MonkeyPatch, answering_server: URL) -> None:
        monkeypatch.setenv("PATH", "")  # no docker to be found
        found = services.find_service("postgresql")
        assert found.available
        assert make_url(found.url or "") == answering_server
        assert found.version == "PostgreSQL 99.9"

    def test_one_that_does_not_answer_is_no_reason_to_start_a_container(
        self, monkeypatch: pytest.MonkeyPatch, refusing_server: URL
    ) -> None:
        monkeypatch.setenv("CHATKEEP_TEST_POSTGRESQL_URL", refusing_server.render_as_string(hide_password=False))
        found = services.find_service("postgresql", within=0.3)
        assert found.url is None
        assert found.reason is not None
        assert "CHATKEEP_TEST_POSTGRESQL_URL" in found.reason
        assert SECRET not in found.reason

    def test_something_that_is_no_url_is_not_repeated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CHATKEEP_TEST_POSTGRESQL_URL", f"password={SECRET}")
        assert services.find_service("postgresql").reason == "CHATKEEP_TEST_POSTGRESQL_URL does not hold a URL"

    def test_asking_for_it_by_url_makes_it_required(
        self, monkeypatch: pytest.MonkeyPatch, notes: dict[str, str]
    ) -> None:
        monkeypatch.delenv("REQUIRE_BACKENDS", raising=False)
        monkeypatch.setenv("CHATKEEP_TEST_POSTGRESQL_URL", "postgresql://db.example/x")
        with pytest.raises(pytest.fail.Exception, match="CHATKEEP_TEST_POSTGRESQL_URL is set"):
            services.skip_or_fail("postgresql", "it is away")


class TestWithoutServer:
    def test_a_machine_without_docker_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CHATKEEP_TEST_POSTGRESQL_URL", raising=False)
        monkeypatch.setenv("PATH", "")
        assert services.find_service("postgresql").reason == "there is no docker command"

    def test_an_engine_that_does_not_run_is_told_from_a_missing_one(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        docker = tmp_path / "docker"
        docker.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
        docker.chmod(0o755)
        monkeypatch.delenv("CHATKEEP_TEST_POSTGRESQL_URL", raising=False)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        reason = services.find_service("postgresql").reason
        assert reason == "no Docker engine answers (Cannot connect to the Docker daemon)"

    def test_a_missing_driver_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = services.SERVERS["postgresql"]
        without = services.Server(driver="no_such_driver", probe=real.probe, address=real.address)
        monkeypatch.setitem(services.SERVERS, "postgresql", without)
        reason = services.find_service("postgresql").reason
        assert reason is not None
        assert "pip install 'chatkeep[postgresql]'" in reason

    @pytest.mark.parametrize("backend", sorted(services.SERVERLESS))
    def test_backends_in_the_process_are_always_there(self, backend: str) -> None:
        found = services.find_service(backend)
        assert found.available
        assert found.url is None

    def test_an_unknown_backend_is_an_error_not_a_skip(self) -> None:
        with pytest.raises(ValueError, match="unknown backend 'postgres'"):
            services.find_service("postgres")


class TestRequiredBackends:
    def test_a_required_backend_fails_where_another_skips(
        self, monkeypatch: pytest.MonkeyPatch, notes: dict[str, str]
    ) -> None:
        monkeypatch.delenv("CHATKEEP_TEST_POSTGRESQL_URL", raising=False)
        monkeypatch.setenv("REQUIRE_BACKENDS", "sqlite")
        with pytest.raises(pytest.skip.Exception, match="postgresql: no engine"):
            services.skip_or_fail("postgresql", "no engine")
        monkeypatch.setenv("REQUIRE_BACKENDS", "sqlite, postgresql")
        with pytest.raises(pytest.fail.Exception, match="postgresql is required"):
            services.skip_or_fail("postgresql", "no engine")

    def test_a_misspelt_name_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REQUIRE_BACKENDS", "postgres")
        with pytest.raises(pytest.UsageError, match="names postgres; the backends known here are"):
            services.required_backends()

    @pytest.mark.parametrize("empty", ["", " ", ","])
    def test_nothing_named_requires_nothing(self, monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
        monkeypatch.setenv("REQUIRE_BACKENDS", empty)
        assert services.required_backends() == frozenset()


class TestReport:
    def test_it_names_the_server_and_no_password(self, answering_server: URL) -> None:
        services._service.cache_clear()
        try:
            services.service_url("postgresql")
        finally:
            services._service.cache_clear()
        report = "\n".join(services.report_lines())
        assert "ran: PostgreSQL 99.9" in report
        assert "db.example:6543/somewhere" in report
        assert SECRET not in report

    def test_it_says_why_a_backend_was_skipped_and_which_was_not_asked_for(
        self, monkeypatch: pytest.MonkeyPatch, notes: dict[str, str]
    ) -> None:
        monkeypatch.delenv("REQUIRE_BACKENDS", raising=False)
        monkeypatch.delenv("CHATKEEP_TEST_POSTGRESQL_URL", raising=False)
        with pytest.raises(pytest.skip.Exception):
            services.skip_or_fail("postgresql", "no engine")
        assert services.report_lines() == [
            "inprocess   not used by the chosen tests",
            "sqlite      not used by the chosen tests",
            "postgresql  skipped: no engine",
            "mysql       not used by the chosen tests",
            "mariadb     not used by the chosen tests",
            "sqlserver   not used by the chosen tests",
        ]


class TestRealServer:
    @pytest.mark.parametrize("backend", BY_SERVER)
    def test_it_answers_and_is_the_same_at_every_call(self, backend: str) -> None:
        found = services.service_url(backend)
        if not found.available:
            services.skip_or_fail(backend, str(found.reason))
        assert services.service_url(backend) is found
        assert found.url is not None
        assert services.SERVERS[backend].probe(make_url(found.url), 5) == found.version

    def test_a_container_that_cannot_start_says_why_and_leaves_nothing(self, tmp_path: Path) -> None:
        """Run in a process of its own, whose end must take every trace of the attempt away."""
        if reason := services.why_no_containers():
            pytest.skip(reason)
        (tmp_path / "docker-compose.yml").write_text(
            "services:\n  postgresql:\n    image: localhost:1/no-such-image:1.0\n    ports: ['127.0.0.1:0:5432']\n"
        )
        script = (
            "import pathlib, sys\n"
            "from tests import services\n"
            "services.REPOSITORY_ROOT = pathlib.Path(sys.argv[1])\n"
            "print(services.service_url('postgresql').reason)\n"
            "print(services.project_name(), file=sys.stderr)\n"
        )
        environment = {**os.environ, "CHATKEEP_TEST_PROJECT": "chatkeep-nothing"}
        environment.pop("CHATKEEP_TEST_POSTGRESQL_URL", None)
        ended = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            cwd=services.REPOSITORY_ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert ended.stdout.startswith("its container did not start: ")
        project = ended.stderr.split()[-1]
        assert project.startswith("chatkeep-nothing-")
        for kind in ("container", "network", "volume"):
            left = subprocess.run(
                ["docker", kind, "ls", "--quiet", "--filter", f"label=com.docker.compose.project={project}"],
                capture_output=True,
                text=True,
                check=True,
            )
            assert left.stdout == ""
