"""The command as a process: exit codes, streams, pipes, signals, memory, configuration, secrets."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chatkeep import Message, __version__, open_repository

from .conftest import Run

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals, pipes and /dev are those of POSIX")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with one long conversation."""
    url = f"sqlite:///{tmp_path}/chat.db"
    with open_repository(url) as repository:
        repository.append("t 🎉", [Message.user(f"message {number} 你好") for number in range(3000)])
    return url


def shell(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    command = f'chatkeep() {{ "{sys.executable}" -m chatkeep "$@"; }}\n{script}'
    return subprocess.run(["/bin/bash", "-c", command], capture_output=True, env=environment, timeout=60, check=False)


def test_help_and_version_answer_without_loading_engines() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from chatkeep.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print(sorted({'sqlalchemy', 'psycopg', 'pymysql', 'sqlite3', 'chatkeep.config'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    assert done.stdout.strip() == b"[]"


def test_version_names_the_version(process: Run) -> None:
    done = process("--version")
    assert (done.code, done.out) == (0, f"chatkeep {__version__}\n")


def test_data_goes_to_stdout_and_words_to_stderr(process: Run, url: str) -> None:
    exported = process("export", "--url", url)
    assert (exported.code, exported.err) == (0, "")
    assert len(exported.lines) == 3001
    assert process("ls", "--url", url).err == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ls", "--url", "nonsense"], 2),
        (["ls", "--url", "oracle://host/db"], 2),
        (["ls", "--url", "inprocess:?colour=red"], 2),
        (["ls"], 2),
        (["ls", "--no-such-option"], 2),
        (["no-such-command"], 2),
        (["show"], 2),
        (["show", "x", "--url", "inprocess:"], 1),
        (["ls", "--url", "inprocess:"], 0),
        (["--url", "inprocess:", "ls"], 0),
    ],
)
def test_exit_codes_tell_usage_from_failure(process: Run, arguments: list[str], code: int) -> None:
    done = process(*arguments)
    assert done.code == code
    assert "Traceback" not in done.err
    if code == 1:
        assert done.err.count("\n") == 1


def test_debug_shows_the_traceback_before_the_line(process: Run) -> None:
    done = process("show", "x", "--url", "inprocess:", "--debug")
    assert done.code == 1
    assert done.err.startswith("Traceback (most recent call last):")
    assert done.err.splitlines()[-1].startswith("error: there is no conversation 'x'")


def test_configuration_comes_from_the_environment_and_from_files(process: Run, url: str, tmp_path: Path) -> None:
    assert len(process("ls", CHATKEEP_URL=url).lines) == 1
    (tmp_path / "chatkeep.toml").write_text(f'url = "{url}"\nowner = "bob"\n')
    assert process("ls").code == 0
    assert process("ls").lines == []
    assert len(process("ls", "--owner", "").lines) == 1
    (tmp_path / "chatkeep.toml").unlink()
    (tmp_path / "pyproject.toml").write_text(f'[tool.chatkeep]\nurl = "{url}"\n')
    assert len(process("ls").lines) == 1


@POSIX
def test_a_reader_that_leaves_early_is_no_error(environment: dict[str, str], url: str) -> None:
    for command in (f"export --url {url}", f"show --url {url} 't 🎉'", f"show --json --url {url} 't 🎉'"):
        done = shell(f"chatkeep {command} | head -n 1; echo ${{PIPESTATUS[0]}}", environment)
        assert done.stderr == b""
        assert done.stdout.splitlines()[-1] == b"141"


@POSIX
def test_a_full_disk_is_one_line_and_exit_1(environment: dict[str, str], url: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = shell(f"chatkeep export --url {url} > /dev/full", environment)
    assert done.returncode == 1
    assert done.stderr == b"error: No space left on device\n"


@POSIX
def test_an_export_pipes_into_an_import(environment: dict[str, str], url: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path}/other.db"
    done = shell(f"set -o pipefail; chatkeep export -u {url} | chatkeep import -u {other} -", environment)
    assert done.returncode == 0, done.stderr
    with open_repository(url) as source, open_repository(other) as target:
        assert target.find_by_conversation_id("t 🎉") == source.find_by_conversation_id("t 🎉")


@POSIX
def test_an_interrupted_import_is_quiet_and_can_be_repeated(
    environment: dict[str, str], url: str, tmp_path: Path
) -> None:
    other = f"sqlite:///{tmp_path}/other.db"
    lines = subprocess.run(
        [sys.executable, "-m", "chatkeep", "export", "-u", url], capture_output=True, env=environment, check=True
    ).stdout
    command = [sys.executable, "-m", "chatkeep", "import", "-u", other, "-"]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert started.stdin is not None
    assert started.stderr is not None
    # More than a pipe holds, so that some is stored; and no end, so that it waits for more.
    started.stdin.write(lines[: len(lines) * 2 // 3].rpartition(b"\n")[0] + b"\n")
    started.stdin.flush()
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=30)
    assert started.returncode == 130
    assert b"Traceback" not in err
    assert b"repeat the import" in err
    subprocess.run(command, input=lines, env=environment, capture_output=True, check=True)
    with open_repository(url) as source, open_repository(other) as target:
        assert target.find_by_conversation_id("t 🎉") == source.find_by_conversation_id("t 🎉")


def test_a_terminal_without_unicode_gets_question_marks_and_data_stays_utf_8(process: Run, url: str) -> None:
    listed = process("ls", "--url", url, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert listed.code == 0
    assert listed.out.startswith("t ?\t")
    assert process("show", "--url", url, "--limit", "1", "t 🎉", PYTHONIOENCODING="ascii").code == 0
    exported = process("export", "--url", url, PYTHONIOENCODING="ascii")
    assert json.loads(exported.lines[0])["id"] == "t 🎉"


MEASURE_PEAK = """
import os, re, sys
from pathlib import Path
from chatkeep.cli import main
try:
    main()
finally:
    status = Path("/proc/self/status").read_text()
    Path(os.environ["PEAK_FILE"]).write_text(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
def test_memory_stays_flat_however_much_goes_through(environment: dict[str, str], tmp_path: Path) -> None:
    big, other, file = f"sqlite:///{tmp_path}/big.db", f"sqlite:///{tmp_path}/other.db", tmp_path / "big.jsonl"
    peak = tmp_path / "peak"
    with open_repository(f"{big}?synchronous=off") as repository:
        for _ in range(10):
            repository.append("big", [Message.user("x" * 32_000) for _ in range(250)])
    for arguments in (
        ["export", "--url", big, "--output", str(file)],
        ["import", "--url", f"{other}?synchronous=off", str(file)],
        ["copy", big, other],
        ["show", "--url", big, "big"],
    ):
        subprocess.run(
            [sys.executable, "-c", MEASURE_PEAK, *arguments],
            stdout=subprocess.DEVNULL,
            env=environment | {"PEAK_FILE": str(peak)},
            check=True,
        )
        assert int(peak.read_text()) < 100_000, arguments
    assert file.stat().st_size > 80_000_000


SECRETS = ["geheim", "p@ss:w/r#d", "per%25cent", "sp%20ace", "ümläut"]


@pytest.mark.parametrize(
    ("scheme", "driver"), [("postgresql", "psycopg"), ("mysql", "pymysql")], ids=["postgresql", "mysql"]
)
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "command",
    [
        ["ls", "-u", "{}"],
        ["ls", "-u", "{}", "--debug"],
        ["ls", "{}"],
        ["{}"],
        ["doctor", "-u", "{}", "--debug"],
        ["migrate", "-u", "{}"],
        ["status", "-u", "{}", "--debug"],
        ["copy", "{}", "{}"],
        ["copy", "inprocess:", "{}", "--debug"],
        ["import", "{}"],
        ["ls", "-u", "{}?colour=red"],
        ["ls", "-u", "{}?password=geheimer"],
    ],
    ids=" ".join,
)
def test_no_output_holds_a_password(run: Run, command: list[str], secret: str, scheme: str, driver: str) -> None:
    pytest.importorskip(driver)
    given = f"{scheme}://app:{secret}@127.0.0.1:1/chat"
    done = run(*[word.replace("{}", given) for word in command], url=None)
    assert done.code in (1, 2)
    everything = "".join((done.out + done.err).split())
    for form in {secret, secret.replace("%25", "%").replace("%20", " "), "geheimer"}:
        assert "".join(form.split()) not in everything


def test_a_password_of_the_environment_is_not_shown_either(process: Run) -> None:
    pytest.importorskip("psycopg")
    done = process("doctor", "--debug", CHATKEEP_URL="postgresql://app@127.0.0.1:1/chat", CHATKEEP_PASSWORD="geheim")
    assert done.code == 1
    assert "geheim" not in done.out + done.err
