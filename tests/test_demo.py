"""The demo, run for real: it proves what it prints, leaves what it says, and fails with the step that failed."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from sqlalchemy.engine import URL, make_url

from chatkeep import ChatMemoryRepository, Message, PurgeReport, open_repository
from chatkeep.cli.demo import run_demo, steps
from chatkeep.cli.demo.conversation import load_conversation, turns
from chatkeep.cli.demo.place import Place
from chatkeep.cli.demo.worker import Worker, WorkerFailedError
from chatkeep.formats.openai import messages_to_openai
from tests import services

ROOT = Path(__file__).resolve().parents[1]
CONVERSATION = json.loads((ROOT / "examples/conversation.json").read_text(encoding="utf-8"))
HEADLINES = [
    "✓ 1. Migrated a fresh database",
    "✓ 2. Stored examples/conversation.json turn by turn",
    "✓ 3. Read it back in another process",
    "✓ 4. Read a window of the newest messages",
    "✓ 5. Two processes",
    "✓ 6. A message with ttl=1 s expired, its neighbour stayed",
    "✓ 7. Deleted what only these steps needed",
    "All 7 steps proved",
]
ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def clean_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the developer's machine reaches a test."""
    monkeypatch.chdir(tmp_path)
    # The processes that the demo starts find the package from any directory.
    path = filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    for name in [*os.environ]:
        if name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS") or (
            name.startswith("CHATKEEP_") and not name.startswith("CHATKEEP_TEST_")
        ):
            monkeypatch.delenv(name)


def run_in_pipe(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`chatkeep demo` as a process of its own, its output read by a program."""
    return subprocess.run(
        [sys.executable, "-m", "chatkeep", "demo", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        timeout=60,
        check=False,
    )


def run_here(url: str | None = None, directory: Path | None = None) -> tuple[int, str]:
    """The demo in this process, with what it printed."""
    console = Console(file=io.StringIO(), width=100, markup=False, emoji=False, highlight=False)
    code = run_demo(url, directory, console)
    assert isinstance(console.file, io.StringIO)
    return code, console.file.getvalue()


@pytest.mark.sqlite
def test_the_demo_proves_every_step_and_is_short_enough_to_read() -> None:
    done = run_in_pipe()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert [line for line in HEADLINES if line not in done.stdout] == []
    assert ESCAPE not in done.stdout
    assert len(done.stdout.splitlines()) <= 80
    seconds = re.search(r"proved in ([\d.]+) s", done.stdout)
    assert seconds is not None
    # On a machine with nothing else to do it takes 3.
    assert float(seconds[1]) < 30
    for seen in ("夜景がきれいなホテル", "هل يوجد مطعم حلال", "→ get_climate", "← find_hotels", "[image/png, 139 B]"):
        assert seen in done.stdout


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("colour", "expected"), [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)]
)
def test_colours_are_left_out_when_nobody_wants_them(colour: dict[str, str], expected: bool) -> None:
    done = run_in_pipe("--url", "inprocess:", **colour)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("[32m" in done.stdout or "[1;32m" in done.stdout) == expected


@pytest.mark.sqlite
def test_nothing_is_left_behind_without_a_directory(tmp_path: Path) -> None:
    here = tmp_path / "temporary"
    here.mkdir()
    done = run_in_pipe(TMPDIR=str(here), TEMP=str(here), TMP=str(here))
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(here) in done.stdout
    assert list(here.iterdir()) == []
    assert [path for path in tmp_path.iterdir() if path != here] == []


@pytest.mark.sqlite
def test_a_directory_keeps_the_conversation_and_nothing_else(tmp_path: Path) -> None:
    kept = tmp_path / "a new directory with ? and #"
    code, out = run_here(directory=kept)
    assert code == 0, out
    with open_repository(URL.create("sqlite", database=str(kept / "chat.db"))) as repository:
        (conversation_id,) = repository.find_conversation_ids()
        assert f"as conversation {conversation_id}" in out
        assert messages_to_openai(repository.find_by_conversation_id(conversation_id)) == CONVERSATION
        assert repository.for_owner(conversation_id).find_conversation_ids() == []
    again, out = run_here(directory=kept)
    assert (again, "✓ 1. Migrated the database" in out) == (0, True), out


@pytest.mark.inprocess
def test_a_store_of_one_process_shows_what_it_can() -> None:
    code, out = run_here("inprocess:")
    assert code == 0, out
    assert "✓ 1. Opened the database" in out
    assert "✓ 3. Read it back from the store of this process: equal to the file, field by field" in out
    assert "processes" not in out
    assert "All 6 steps proved" in out


@pytest.mark.inprocess
def test_a_message_that_comes_back_otherwise_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(messages: list[Message]) -> list[dict[str, Any]]:
        written = messages_to_openai(messages)
        return [*written[:5], {**written[5], "content": "cut"}, *written[6:]]

    monkeypatch.setattr(steps, "messages_to_openai", changed)
    code, out = run_here("inprocess:")
    assert code == 1
    assert out.splitlines()[-1].startswith("✗ ")
    assert "message 5 is not the one in the file" in out
    assert "✓ 3." not in out


def faulty(change: Callable[[list[Message]], list[Message]], conversation: str, limited: bool) -> Any:
    """A `find_by_conversation_id` that gives something else for one conversation or for every window."""
    right = ChatMemoryRepository.find_by_conversation_id

    def find(self: ChatMemoryRepository, conversation_id: str, *, limit: int | None = None) -> list[Message]:
        found = right(self, conversation_id, limit=limit)
        return change(found) if conversation_id == conversation or (limited and limit is not None) else found

    return find


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("conversation", "change", "reason"),
    [
        ("", lambda found: found[1:], "the newest 6 are not the end of the conversation"),
        ("busy", lambda found: found[:-1], "writer (one|two) finds another order"),
        ("busy", lambda found: sorted(found, key=_by_writer_and_half), "writer one finds another order"),
        ("fleeting", lambda found: found[:1], "it was never visible"),
        ("fleeting", lambda found: found[1:], "it was never visible"),
    ],
)
def test_a_store_that_breaks_its_word_fails_the_demo(
    conversation: str, change: Callable[[list[Message]], list[Message]], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = faulty(change, conversation, limited=not conversation)
    monkeypatch.setattr(ChatMemoryRepository, "find_by_conversation_id", find)
    code, out = run_here(f"sqlite:///chat-{uuid.uuid4().hex}.db")
    assert code == 1, out
    assert re.search(reason, out.splitlines()[-1]), out


def _by_writer_and_half(message: Message) -> tuple[str, str]:
    writer, _, half = message.text.split()
    return writer, half


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["one 0 question", "two 0 question", "one 0 answer", "two 0 answer"], "an append was torn apart"),
        (["one 0 question", "one 0 answer", "two 0 question"], "writer two finds another order"),
    ],
)
def test_the_order_of_two_writers_is_judged(texts: list[str], reason: str) -> None:
    with pytest.raises(steps.NotProvedError, match=reason):
        steps.changes_of_writer(texts, appends=1)


def test_writers_that_took_turns_are_counted() -> None:
    texts = ["one 0 question", "one 0 answer", "two 0 question", "two 0 answer"]
    assert steps.changes_of_writer(texts, appends=1) == 1


@pytest.mark.inprocess
def test_a_purge_that_removes_nothing_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = PurgeReport(messages=0, conversations=0, dry_run=False)
    monkeypatch.setattr(ChatMemoryRepository, "purge_expired", lambda self: nothing)
    code, out = run_here("inprocess:")
    assert (code, "the purge removed 0 messages, not 1" in out) == (1, True), out


def test_a_server_that_does_not_answer_fails_the_demo_without_naming_the_password() -> None:
    code, out = run_here("postgresql://app:s3cret@127.0.0.1:1/chat")
    assert code == 1
    assert "✗ open postgresql://app:***@127.0.0.1:1/chat: " in out
    assert "s3cret" not in out


def test_a_failed_step_is_the_exit_code_of_the_command() -> None:
    done = run_in_pipe("--url", "sqlite:///missing/chat.db")
    assert (done.returncode, done.stdout.splitlines()[-1][:1]) == (1, "✗"), done.stdout + done.stderr


@pytest.mark.sqlite
def test_a_directory_that_cannot_be_made_fails_the_demo(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, out = run_here(directory=tmp_path / "file" / "sub")
    assert (code, "✗ open sqlite:" in out) == (1, True), out


@pytest.mark.sqlite
def test_a_process_that_ends_without_an_answer_is_reported_with_its_last_words(tmp_path: Path) -> None:
    job = {"task": "write", "owner": "", "conversation": "x", "writer": "one", "appends": 1}
    with Worker(Place(tmp_path / "missing" / "chat.db"), job) as worker:
        with pytest.raises(WorkerFailedError, match=r"the other process ended with 1: .*unable to open database file"):
            worker.wait_until_ready()


@pytest.mark.sqlite
def test_a_process_that_is_not_waited_for_is_ended(tmp_path: Path) -> None:
    job = {"task": "write", "owner": "", "conversation": "x", "writer": "one", "appends": 1_000_000}
    with Worker(Place(tmp_path / "chat.db"), job) as worker:
        worker.wait_until_ready()
        worker.go()
    assert worker._process.returncode is not None


def test_turns_begin_with_a_user_message_and_lose_nothing() -> None:
    messages = [
        Message(role) for role in ("system", "user", "assistant", "tool", "assistant", "user", "user", "assistant")
    ]
    found = list(turns(messages))
    assert [[message.role for message in turn] for turn in found] == [
        ["system", "user", "assistant", "tool", "assistant"],
        ["user"],
        ["user", "assistant"],
    ]
    assert [message for turn in found for message in turn] == messages
    assert list(turns([])) == []


def test_the_conversation_is_found_and_is_the_one_of_the_examples() -> None:
    assert load_conversation() == CONVERSATION


@pytest.fixture
def empty_schema() -> Iterator[URL]:
    import psycopg

    found = services.service_url("postgresql")
    if not found.available:
        services.skip_or_fail("postgresql", str(found.reason))
    url = make_url(str(found.url))
    name = f"test_demo_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}")
        yield url.update_query_dict({"search_path": name})
        admin.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.mark.postgresql
def test_on_a_server_the_schema_is_not_touched_and_the_conversation_stays(empty_schema: URL) -> None:
    text = empty_schema.render_as_string(hide_password=False)
    code, out = run_here(text)
    assert code == 1
    assert "chatkeep migrate" in out

    with open_repository(text, schema="migrate") as repository:
        repository.append("neighbour", Message.user("stays"))
    code, out = run_here(text)
    assert code == 0, out
    assert "All 7 steps proved" in out
    assert str(empty_schema.password) not in out
    with open_repository(text) as repository:
        demo, neighbour = repository.find_conversation_ids()
        assert neighbour == "neighbour"
        assert messages_to_openai(repository.find_by_conversation_id(demo)) == CONVERSATION
        assert repository.for_owner(demo).find_conversation_ids() == []
