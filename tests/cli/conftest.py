"""A clean place for each test, the command in this process and as a process of its own, and databases to look at."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chatkeep import ChatMemoryRepository, Message, open_repository
from chatkeep.cli import app, secrets

SOURCE = Path(__file__).resolve().parents[2] / "src"


class Outcome:
    """What a command left: the exit code and both streams as text."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def clean_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the developer's machine reaches a test, and no secret of one test the next."""
    monkeypatch.chdir(tmp_path)
    for name in [*os.environ]:
        if name in ("NO_COLOR", "FORCE_COLOR") or (
            name.startswith("CHATKEEP_") and not name.startswith("CHATKEEP_TEST_")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(secrets, "_secrets", set())


@pytest.fixture(params=["inprocess", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    return f"inprocess:{uuid.uuid4()}" if request.param == "inprocess" else f"sqlite:///{tmp_path}/chat.db"


@pytest.fixture
def other_database(tmp_path: Path) -> str:
    """The URL of a second one."""
    return f"sqlite:///{tmp_path}/other.db"


@pytest.fixture
def repository(database: str) -> Iterator[ChatMemoryRepository]:
    """The test's own way into the database, with a neighbour that no command may touch."""
    with open_repository(database) as opened:
        opened.for_owner("neighbour").append("thread", [Message.user("not yours")])
        yield opened
        assert [message.text for message in opened.for_owner("neighbour").find_by_conversation_id("thread")] == [
            "not yours"
        ]


@pytest.fixture
def run(database: str) -> Run:
    """`run("ls", "--json")`: the command on the test's database, in this process."""

    def invoke(*arguments: str, stdin: str | bytes | None = None, url: str | None = database) -> Outcome:
        where = [] if url is None else ["--url", url]
        result = CliRunner().invoke(app, [*where, *arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a process that runs the command from the sources."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def process(environment: dict[str, str]) -> Run:
    """`process("ls", "--url", …)`: the command as a process of its own."""

    def start(*arguments: str, stdin: bytes = b"", **variables: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "chatkeep", *arguments],
            input=stdin,
            capture_output=True,
            env=environment | variables,
            timeout=60,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return start
