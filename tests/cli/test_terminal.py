"""The command on a terminal, where a person looks: tables, colours, questions, progress."""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from chatkeep import Message, ToolCall, open_repository

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are POSIX's")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOURS = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")

Screen = Callable[..., tuple[int, str]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/chat.db"
    with open_repository(url) as repository:
        for number in range(60):
            repository.append(f"conversation-{number:02}", [Message.user("x")])
        repository.append("日本語の会話-🎉" * 9, [Message.user("x")])
        repository.append("evil", [Message.user("\x1b]0;pwned\x07\x1b[2J"), Message.assistant("fine")])
        repository.append("evil", [Message.assistant(None, tool_calls=[ToolCall("c", "f", "{}")])])
        repository.update_conversation("evil", title="長い日本語のタイトル" * 20 + "\x1b[2J")
    return url


@pytest.fixture
def screen(environment: dict[str, str]) -> Screen:
    """`screen("ls", …, answer="y")`: the exit code and all that a terminal of 80 columns was sent."""

    def show(*arguments: str, answer: str = "", **variables: str) -> tuple[int, str]:
        import pty

        mine, theirs = pty.openpty()
        started = subprocess.Popen(
            [sys.executable, "-m", "chatkeep", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment | {"COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"} | variables,
            close_fds=True,
        )
        os.close(theirs)
        output, deadline = b"", time.monotonic() + 60
        while time.monotonic() < deadline:
            if not select.select([mine], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(mine, 65536)
            except OSError:  # Linux says EIO where others say end of file
                break
            if not data:
                break
            output += data
            if answer and output.rstrip().endswith(b"[y/N]:"):
                os.write(mine, answer.encode() + b"\n")
                answer = ""
        os.close(mine)
        return started.wait(timeout=10), output.decode().replace("\r\n", "\n")

    return show


def test_ls_is_a_table_that_fits_and_tells_how_to_go_on(screen: Screen, url: str) -> None:
    code, output = screen("ls", "--url", url)
    assert code == 0
    lines = ESCAPES.sub("", output).splitlines()
    assert lines[0].split() == ["id", "title", "messages", "updated"]
    *rows, last = [line for line in lines[1:] if line.strip()]
    assert all(cell_len(line) <= 80 for line in rows)
    assert last.startswith("50 conversations, and there are more: --all, or --cursor ")
    code, rest = screen("ls", "--url", url, "--cursor", last.rpartition(" ")[2])
    assert code == 0
    assert len(re.findall(r"conversation-\d\d", output + rest)) == 60
    assert "there are more" not in rest


def test_an_id_is_never_cut_so_that_it_can_be_copied(screen: Screen, url: str) -> None:
    _, output = screen("ls", "--url", url, "--limit", "2")
    first_columns = "".join(line[:30] for line in ESCAPES.sub("", output).splitlines())
    assert "".join(first_columns.split()).count("🎉") == 9


def test_stored_escape_sequences_do_not_reach_the_terminal(screen: Screen, url: str) -> None:
    for command in (["ls"], ["show", "evil"]):
        _, output = screen(*command, "--url", url)
        assert "\x1b]0;" not in output
        assert "\x07" not in output
        assert "\x1b[2J" not in output
    assert "␛]0;pwned␇␛[2J" in output


def test_no_color_is_respected(screen: Screen, url: str) -> None:
    for command in (["ls"], ["show", "evil"], ["show", "nope"]):
        assert COLOURS.search(screen(*command, "--url", url)[1]), command
        assert not COLOURS.search(screen(*command, "--url", url, NO_COLOR="1")[1]), command


def test_roles_have_colours_of_their_own(screen: Screen, url: str) -> None:
    _, output = screen("show", "evil", "--url", url)
    user, assistant = (re.search(rf"(\x1b\[[0-9;]*m){role}", output) for role in ("user", "assistant"))
    assert user is not None
    assert assistant is not None
    assert user[1] != assistant[1]


@pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, 0), ("n", 1, 1), (" ", 1, 1)])
def test_delete_asks_and_obeys(screen: Screen, url: str, answer: str, code: int, left: int) -> None:
    got, output = screen("delete", "conversation-01", "--url", url, answer=answer)
    assert "Delete conversation 'conversation-01' with 1 message?" in output
    assert got == code
    with open_repository(url) as repository:
        assert repository.count_messages("conversation-01") == left


def test_progress_is_shown_to_a_person_who_waits(screen: Screen, url: str, tmp_path: Path) -> None:
    file, other = tmp_path / "out.jsonl", f"sqlite:///{tmp_path}/other.db"
    for command in (
        ["export", "--url", url, "--output", str(file)],
        ["import", "--url", other, str(file)],
        ["copy", url, other],
    ):
        code, output = screen(*command)
        assert code == 0
        assert f"{command[0]} ━" in ESCAPES.sub("", output)


def test_data_on_the_terminal_is_not_mixed_with_a_bar(screen: Screen, url: str) -> None:
    code, output = screen("export", "evil", "--url", url)
    assert code == 0
    assert "━" not in output
    assert len(output.splitlines()) == 4
