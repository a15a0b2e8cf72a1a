"""The steps of the demo, each with what it proves. Prints for people; changes nothing but what it made itself."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import secrets
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text as Styled

from chatkeep import ChatkeepError, ChatMemoryRepository, Message
from chatkeep.cli import output
from chatkeep.cli.demo.conversation import load_conversation, turns
from chatkeep.cli.demo.lines import INDENT, message_lines
from chatkeep.cli.demo.place import FILE, Place
from chatkeep.cli.demo.worker import Worker, WorkerFailedError
from chatkeep.cli.text import count, one_line
from chatkeep.formats.openai import messages_from_openai, messages_to_openai

WINDOW = 6
WRITERS = ("one", "two")
APPENDS = 20
LIFE = dt.timedelta(seconds=1)
PATIENCE = 10.0
"""Seconds within which a message must be gone: engines with whole seconds round its life up."""


class NotProvedError(Exception):
    """A step found something else than chatkeep promises."""


def run(url: str | None, directory: Path | None, console: Console | None) -> int:
    """All steps; see chatkeep.cli.demo."""
    console = console or output.console()
    if url is not None:
        return Demo(Place(text=url), console, kept=True).run()
    if directory is not None:
        return Demo(Place(directory / FILE), console, kept=True).run()
    with tempfile.TemporaryDirectory(prefix="chatkeep-demo-") as name:
        return Demo(Place(Path(name) / FILE), console, kept=False).run()


class Demo:
    """One run on one database. Each step prints its headline and what it proved, or raises."""

    def __init__(self, place: Place, console: Console, *, kept: bool) -> None:
        self._place = place
        self._console = console
        self._kept = kept
        self._id = f"demo-{secrets.token_hex(4)}"
        """The conversation that stays, and the owner of those that don't."""
        self._given: list[dict[str, Any]] = []
        self._stored: list[Message] = []
        self._steps = 0
        self._doing = ""

    def run(self) -> int:
        """All steps; 0, or 1 after the one that failed."""
        started = time.perf_counter()
        self._line(Styled("chatkeep demo", "bold").append("  a conversation into a database and back", "not bold"))
        try:
            self._run_steps()
        except (ChatkeepError, NotProvedError, WorkerFailedError, OSError) as exc:
            self._line()
            self._line(
                Styled("✗ ", "bold red").append(self._doing, "default").append(f": {one_line(str(exc))}", "not bold")
            )
            return 1
        self._say_what_next(time.perf_counter() - started)
        return 0

    def _run_steps(self) -> None:
        self._migrate()
        with self._place.open() as repository:
            shared = repository.capabilities.shared_between_processes
            self._store(repository)
            if not shared:
                # What such a store holds is gone when it is closed: all the rest happens on this one.
                self._kept = False
                self._read_back(repository.find_by_conversation_id(self._id), "from the store of this process")
                self._rest(repository)
        if shared:
            self._doing = f"read conversation {self._id} back in another process"
            with Worker(self._place, {"task": "read", "owner": "", "conversation": self._id}) as worker:
                answer = worker.answer()
            found = [Message.from_dict(data) for data in answer["messages"]]
            self._read_back(found, f"in another process ({answer['process']})")
            with self._place.open() as repository:
                self._rest(repository)

    def _rest(self, repository: ChatMemoryRepository) -> None:
        self._window(repository)
        aside = repository.for_owner(self._id)
        try:
            if repository.capabilities.shared_between_processes and repository.capabilities.concurrent_appends:
                self._write_at_once(aside)
            if repository.capabilities.ttl:
                self._expire(aside)
            self._delete(aside)
        except BaseException:
            # What was stored aside must not stay, whatever failed.
            with contextlib.suppress(ChatkeepError, NotProvedError):
                _delete_all(aside)
            raise

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _migrate(self) -> None:
        self._doing = f"open {self._place.shown}"
        report = self._place.migrate()
        if report is None:
            with self._place.open() as repository:
                self._done(
                    "Opened the database", f"{self._place.shown}: its tables are as {repository.backend} needs them"
                )
            return
        applied = f", {', '.join(report.applied)} applied" if report.applied else ", nothing to do"
        fresh = "a fresh database" if report.version_before == 0 else "the database"
        self._done(f"Migrated {fresh}", self._place.shown, f"at version {report.version}{applied}")

    def _store(self, repository: ChatMemoryRepository) -> None:
        self._doing = f"store conversation {self._id}"
        self._given = load_conversation()
        self._stored = messages_from_openai(self._given)
        appends = list(turns(self._stored))
        started = time.perf_counter()
        for turn in appends:
            repository.append(self._id, turn)
        spent = f"{(time.perf_counter() - started) * 1000:.0f} ms"
        stored = (
            f"{count(len(self._stored), 'message')} of OpenAI's format by {count(len(appends), 'append')} in {spent}"
        )
        self._done("Stored examples/conversation.json turn by turn", f"{stored}, as conversation {self._id}")

    def _read_back(self, found: list[Message], where: str) -> None:
        _prove(found == self._stored, "the messages read are not the messages stored")
        written = messages_to_openai(found)
        _prove(len(written) == len(self._given), f"{len(written)} messages came back of {len(self._given)}")
        for index, (one, other) in enumerate(zip(self._given, written, strict=True)):
            _prove(_same_json(one, other), f"message {index} is not the one in the file")
        calls = count(sum(len(message.tool_calls) for message in found), "tool call")
        self._done(
            f"Read it back {where}: equal to the file, field by field",
            f"{count(len(found), 'message')}, {calls} with their results, images, all in order; one line each:",
        )
        self._show(found)

    def _window(self, repository: ChatMemoryRepository) -> None:
        self._doing = f"read the newest messages of {self._id}"
        found = repository.find_by_conversation_id(self._id, limit=WINDOW)
        _prove(found == self._stored[-WINDOW:], f"the newest {WINDOW} are not the end of the conversation")
        self._done(
            "Read a window of the newest messages",
            f'find_by_conversation_id("{self._id}", limit={WINDOW}): one read, however long the conversation is',
        )
        self._show(found)

    def _write_at_once(self, aside: ChatMemoryRepository) -> None:
        self._doing = "append to one conversation from two processes"
        job = {"task": "write", "owner": aside.owner, "conversation": "busy", "appends": APPENDS}
        with contextlib.ExitStack() as stack:
            workers = [stack.enter_context(Worker(self._place, {**job, "writer": name})) for name in WRITERS]
            for worker in workers:
                worker.wait_until_ready()
            started = time.perf_counter()
            for worker in workers:
                worker.go()
            processes = [str(worker.answer()["process"]) for worker in workers]
            spent = time.perf_counter() - started
        texts = [message.text for message in aside.find_by_conversation_id("busy")]
        changes = changes_of_writer(texts, APPENDS)
        self._done(
            f"Two processes ({' and '.join(processes)}) wrote to one conversation at once",
            f"all {len(texts)} messages of {2 * APPENDS} appends survived in {spent * 1000:.0f} ms; the writer changed "
            f"{count(changes, 'time')}",
            "each writer's messages are in its order, those of one append side by side",
        )

    def _expire(self, aside: ChatMemoryRepository) -> None:
        self._doing = "let a message expire"
        stays, goes = Message.user("Remember my name: Ada."), Message.user("My one-time code is 4711.")
        aside.append("fleeting", stays)
        started = time.perf_counter()
        aside.append("fleeting", goes, ttl=LIFE)
        seen = aside.find_by_conversation_id("fleeting")
        _prove(seen == [stays, goes] or time.perf_counter() - started > LIFE.total_seconds(), "it was never visible")
        while aside.find_by_conversation_id("fleeting") != [stays]:
            _prove(time.perf_counter() - started < PATIENCE, f"it is still there after {PATIENCE:.0f} s")
            time.sleep(0.02)
        gone = f"visible at once, gone after {time.perf_counter() - started:.2f} s"
        report = aside.purge_expired() if aside.capabilities.purge else None
        expected = report is None or aside.capabilities.native_expiry or report.messages == 1
        _prove(expected, f"the purge removed {report.messages if report else 0} messages, not 1")
        removed = (
            "" if report is None else f"; purge_expired() then deleted {count(report.messages, 'message')} for good"
        )
        self._done(f"A message with ttl={LIFE.total_seconds():.0f} s expired, its neighbour stayed", f"{gone}{removed}")

    def _delete(self, aside: ChatMemoryRepository) -> None:
        self._doing = "delete what only the demo needed"
        deleted = _delete_all(aside)
        _prove(aside.find_conversation_ids() == [], "a deleted conversation is still listed")
        _prove(not any(aside.find_by_conversation_id(one) for one in deleted), "a deleted conversation can be read")
        if deleted:
            what = count(len(deleted), "conversation")
            self._done("Deleted what only these steps needed", f"{what}, gone from every list and every read")

    # --- printing -----------------------------------------------------------------------------------------------------

    def _done(self, headline: str, *facts: str) -> None:
        self._steps += 1
        self._line()
        self._line(Styled("✓ ", "bold green").append(f"{self._steps}. {headline}", "bold default"))
        for fact in facts:
            self._console.print(Styled(INDENT[:-2]).append(one_line(fact), "dim"), soft_wrap=True)

    def _show(self, messages: list[Message]) -> None:
        names = {call.id: call.name for message in self._stored for call in message.tool_calls}
        for line in message_lines(messages, names, self._console.width):
            self._console.print(line, no_wrap=True, overflow="ellipsis")

    def _say_what_next(self, seconds: float) -> None:
        url = f'"{self._place.shown}"' if self._place.is_complete else "URL"
        if self._kept:
            hints = [
                f"chatkeep show {self._id} --url {url}",
                f"chatkeep ls --url {url}",
                f'python: chatkeep.open_repository({url}).find_by_conversation_id("{self._id}")',
            ]
        else:
            hints = [
                "chatkeep demo --keep DIR     the same, and the database stays in DIR",
                "chatkeep demo --url URL      the same on another database, such as postgresql://user@host/chat",
                "chatkeep --help              migrate, ls, show, export, import, copy, purge",
            ]
        self._line()
        self._line(
            Styled(f"All {self._steps} steps proved in {seconds:.1f} s.", "bold green").append(" Try next:", "default")
        )
        for hint in hints:
            self._line(Styled(f"  {hint}"))

    def _line(self, text: Styled | None = None) -> None:
        self._console.print(Styled() if text is None else text, soft_wrap=True)


def changes_of_writer(texts: list[str], appends: int) -> int:
    """How often the writer changes, in texts of which each writer's are in order and each append's side by side."""
    for name in WRITERS:
        sent = [f"{name} {number} {half}" for number in range(appends) for half in ("question", "answer")]
        _prove([text for text in texts if text.startswith(name)] == sent, f"writer {name} finds another order")
    pairs = zip(texts[::2], texts[1::2], strict=True)
    _prove(all(one.split()[:2] == two.split()[:2] for one, two in pairs), "an append was torn apart")
    return sum(one.split()[0] != two.split()[0] for one, two in pairwise(texts))


def _prove(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotProvedError(otherwise)


def _same_json(one: Any, other: Any) -> bool:
    """Equal as JSON texts: unlike ==, this tells 1 from 1.0 and from true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _delete_all(repository: ChatMemoryRepository) -> list[str]:
    ids = repository.find_conversation_ids()
    for conversation_id in ids:
        _prove(repository.delete_by_conversation_id(conversation_id), "there was nothing to delete")
    return ids
