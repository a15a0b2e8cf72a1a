"""The example store beyond the suite: restarts, broken files, names of files, what the README shows."""

import asyncio
import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chatkeep import (
    ConfigurationError,
    Media,
    Message,
    StorageError,
    StoredDataError,
    Text,
    open_async_repository,
    open_repository,
)
from chatkeep.custom import repository_over
from examples.own_store.json_files import JsonFileStore

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_store"


def test_it_opens_in_both_forms_on_the_same_files(tmp_path: Path) -> None:
    url = f"jsonfiles:{tmp_path / 'kept'}"
    messages = [Message.user([Text("see\0\ud800"), Media("image/png", b"\x89PNG")]), Message.assistant("Yes.")]
    with open_repository(url) as repository:
        repository.append("thread", messages[0])

    async def more() -> list[Message]:
        async with await open_async_repository(url) as again:
            await again.append("thread", messages[1])
            return await again.find_by_conversation_id("thread")

    assert asyncio.run(more()) == messages


def test_a_new_process_finds_what_was_written_and_goes_on(tmp_path: Path) -> None:
    program = (
        "import sys, json_files\n"
        "from chatkeep import Message, open_repository\n"
        "with open_repository(sys.argv[1]) as repository:\n"
        "    print(repository.append('thread', Message.user(sys.argv[2])))\n"
        "    print([message.text for message in repository.find_by_conversation_id('thread')])\n"
    )
    url = f"jsonfiles:{tmp_path}"
    printed = [
        subprocess.run(
            [sys.executable, "-c", program, url, word],
            cwd=EXAMPLE,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout.splitlines()
        for word in ("one", "two")
    ]
    assert [lines[1] for lines in printed] == ["['one']", "['one', 'two']"]
    assert int(printed[1][0]) > int(printed[0][0])


def test_any_id_has_a_file_of_its_own(tmp_path: Path) -> None:
    ids = ["a", "A", "../../etc/passwd", "x" * 255, "😀" * 255, "a.json", "CON", "%2e", "e\u0301", "\u00e9", ".", "~"]
    with repository_over(JsonFileStore(tmp_path / "kept")) as repository:
        for owner in ("", "A" * 255):
            handle = repository.for_owner(owner)
            for name in ids:
                handle.append(name, Message.user(name + owner))
            assert handle.find_conversation_ids() == sorted(ids)
            assert all(handle.find_by_conversation_id(name)[0].text == name + owner for name in ids)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert len(list((tmp_path / "kept").iterdir())) == 2 * len(ids)


def test_a_broken_file_is_loud_and_leaves_the_others_readable(tmp_path: Path) -> None:
    store = JsonFileStore(tmp_path)
    with repository_over(store) as repository:
        for name in ("broken", "foreign", "whole"):
            repository.append(name, Message.user(name))
        store._path("broken").write_text('"broken"\n{"format": \n')
        store._path("foreign").write_text('"foreign"\n{"format": "chatkeep/9"}\n')
        with pytest.raises(StorageError, match="JSONDecodeError"):
            repository.find_by_conversation_id("broken")
        with pytest.raises(StoredDataError, match="chatkeep/9"):
            repository.find_by_conversation_id("foreign")
        assert repository.find_by_conversation_id("whole")[0].text == "whole"
        assert repository.find_conversation_ids() == ["broken", "foreign", "whole"]
        assert repository.delete_by_conversation_id("broken") is True


def test_a_write_that_dies_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError("no space left")

    message = Message.user("old")
    with repository_over(JsonFileStore(tmp_path)) as repository:
        repository.append("thread", message)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="OSError"):
            repository.save_all("thread", [Message.user("new")])
        assert repository.find_by_conversation_id("thread") == [message]
        assert repository.find_conversation_ids() == ["thread"]


def test_a_url_without_a_directory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="directory"):
        open_repository("jsonfiles:")


def test_the_readme_of_the_example_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (EXAMPLE / "README.md").read_text(encoding="utf-8").splitlines()
    session = "\n".join(line for line in lines if line.startswith((">>>", "...")))
    examples = doctest.DocTestParser().get_examples(session + "\n")
    program = "".join(example.source for example in examples).replace(
        "jsonfiles:./conversations", f"jsonfiles:{tmp_path}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "['Hi', 'Hello!']\n"
