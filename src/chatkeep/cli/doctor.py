"""doctor: checks a database from the configuration to a round trip, one ✓ or ✗ line each. Leaves nothing behind."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from chatkeep.cli import output
from chatkeep.cli.given import Debug, Given, Owner, Url, given, place, require_file
from chatkeep.cli.secrets import masked
from chatkeep.cli.text import followed, one_line
from chatkeep.errors import ChatkeepError

if TYPE_CHECKING:
    from rich.console import Console

    from chatkeep.config import Settings
    from chatkeep.repository import ChatMemoryRepository

COLOURS = {"✓": "green", "✗": "bold red", "-": "dim"}


class _Findings:
    """Prints each finding as it comes, and remembers whether one was bad."""

    def __init__(self, console: Console, *, debug: bool) -> None:
        self._console = console
        self._debug = debug
        self.failed = False

    def good(self, what: str, found: str) -> None:
        self._print("✓", what, found)

    def skipped(self, what: str, why: str) -> None:
        self._print("-", what, f"not tried: {why}")

    def bad(self, what: str, problem: str | Exception, next_step: str = "") -> None:
        self.failed = True
        if isinstance(problem, Exception) and self._debug:
            output.show_traceback(problem)
        self._print("✗", what, followed(problem, next_step) if next_step else str(problem))

    def _print(self, mark: str, what: str, text: str) -> None:
        from rich.text import Text

        line = Text.assemble((mark, COLOURS[mark]), " ", (f"{what:<13}", "bold"), " ", one_line(masked(text)))
        self._console.print(line, soft_wrap=not output.is_terminal(sys.stdout))


def doctor(
    ctx: typer.Context,
    pings: Annotated[int, typer.Option(min=1, max=1000, help="Small reads for the latency.")] = 20,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Check the database step by step: configuration, driver, server, tables, a round trip, latency.

    The round trip appends to a conversation of its own, reads it, and deletes it again.
    """
    here = given(ctx, url, owner, debug)
    findings = _Findings(output.console(), debug=debug)
    settings = here.settings()
    findings.good("configuration", f"{place(settings)}, backend {settings.plugin.name}")
    require_file(settings)
    # Neither validated nor migrated on opening: that is a finding of its own here.
    with here.repository(reading=True, schema="ignore") as repository:
        if _server(repository, findings):
            if _schema(here, settings, findings):
                _round_trip(repository, findings)
                _latency(repository, findings, pings)
            else:
                findings.skipped("round trip", "it needs the tables")
    if findings.failed:
        raise typer.Exit(1)


def _server(repository: ChatMemoryRepository, findings: _Findings) -> bool:
    try:
        described = repository._calls.backend.describe()
    except Exception as exc:
        known = isinstance(exc, ChatkeepError)  # its text names the next step
        advice = "" if known else "check host, port, user, password (CHATKEEP_PASSWORD) and that the server runs"
        findings.bad("server", exc, advice)
        return False
    findings.good("driver", described.get("driver", "none needed"))
    findings.good("server", described.get("server", "none, it lives in this process"))
    return True


def _schema(here: Given, settings: Settings, findings: _Findings) -> bool:
    from chatkeep.migrations import runner

    try:
        with here.target(settings, reading=True) as target:
            if target is None:
                findings.good("schema", "this backend has none")
                return True
            runner.validate(target)
            version = max(step.version for step in runner.status(target) if step.applied)
    except Exception as exc:
        findings.bad("schema", exc)
        return False
    findings.good("schema", f"version {version}, as this package wants it")
    return True


def _round_trip(repository: ChatMemoryRepository, findings: _Findings) -> None:
    from chatkeep.message import Message

    conversation_id = f"chatkeep-doctor-{uuid.uuid4()}"
    sent = [Message.user("ping ✓ 你好"), Message.assistant("pong")]
    began = time.perf_counter()
    try:
        repository.append(conversation_id, sent)
        problem = (
            "" if repository.find_by_conversation_id(conversation_id) == sent else "what was read is not what was sent"
        )
        repository.delete_by_conversation_id(conversation_id)
        if not problem and repository.get_conversation(conversation_id) is not None:
            problem = "the conversation is still there after it was deleted"
    except Exception as exc:
        findings.bad("round trip", exc, "the account needs SELECT, INSERT, UPDATE and DELETE on the chatkeep tables")
        with contextlib.suppress(Exception):
            repository.delete_by_conversation_id(conversation_id)
        return
    if problem:
        findings.bad("round trip", problem, "please report this with the lines above")
    else:
        taken = (time.perf_counter() - began) * 1000
        findings.good("round trip", f"append, read, delete in {taken:.1f} ms")


def _latency(repository: ChatMemoryRepository, findings: _Findings, pings: int) -> None:
    taken = []
    try:
        for _ in range(pings):
            began = time.perf_counter()
            repository.count_messages("chatkeep-doctor")
            taken.append((time.perf_counter() - began) * 1000)
    except Exception as exc:
        findings.bad("latency", exc)
        return
    findings.good("latency", f"median of {pings} reads {statistics.median(taken):.2f} ms, slowest {max(taken):.2f} ms")
