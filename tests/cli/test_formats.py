"""import and export in the formats of others: twice is once, a bad line says where it is, and nothing goes unasked."""

import json
from pathlib import Path
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, Media, Message, Text, Thinking, open_repository
from chatkeep.formats import format_names

from .conftest import Run

GOLDEN = Path(__file__).parents[1] / "golden/formats"
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!", "refusal": None}]


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_the_help_names_every_format(run: Run) -> None:
    for command in ("import", "export"):
        shown = "".join(run(command, "--help").out.split())
        for name in format_names():
            assert name in shown


@pytest.mark.parametrize("name", format_names())
def test_a_file_comes_back_as_it_was_and_twice_is_once(run: Run, repository: ChatMemoryRepository, name: str) -> None:
    document = json.loads((GOLDEN / f"{name}.json").read_text(encoding="ascii"))["document"]
    rows = name.startswith("spring-ai")
    given = next(iter(document.values())) if rows else [{"conversation_id": "c", "model": "m", **document}]
    repository.append("neighbour", Message.user("stays"))
    for new in (True, False):
        done = run("import", "-", "--format", name, stdin=lines(*given))
        assert done.code == 0, done
        assert (", 0 of them new" in done.err) is not new
    exported = run("export", "c", "--format", name)
    assert [json.loads(line) for line in exported.lines] == given
    assert repository.count_messages("neighbour") == 1


def test_a_file_of_one_json_text_and_a_list_alone_are_read(run: Run, repository: ChatMemoryRepository) -> None:
    pretty = json.dumps({"model": "m", "messages": CHAT}, indent=2)
    assert run("import", "-", "--format", "openai", "--conversation", "a", stdin=pretty).code == 0
    assert run("import", "-", "--format", "openai", "--conversation", "b", stdin=json.dumps(CHAT)).code == 0
    for conversation_id in "ab":
        assert [message.text for message in repository.find_by_conversation_id(conversation_id)] == ["Hi", "Hello!"]
    assert json.loads(run("export", "a", "--format", "openai").out) == {
        "conversation_id": "a",
        "model": "m",
        "messages": CHAT,
    }


def test_a_file_that_has_grown_adds_what_is_new_and_a_changed_one_is_an_error(
    run: Run, repository: ChatMemoryRepository
) -> None:
    def bring(*messages: Any) -> Any:
        return run("import", "-", "--format", "openai", stdin=lines({"conversation_id": "c", "messages": messages}))

    assert bring(*CHAT[:1]).code == 0
    repository.update_conversation("c", title="T", metadata={"mine": 1})
    assert "1 of them new" in bring(*CHAT).err
    changed = bring({"role": "user", "content": "Ho"})
    assert changed.code == 1
    assert "line 1: message 1 of 'c': message id" in changed.err
    assert "with another content" in changed.err
    assert [message.text for message in repository.find_by_conversation_id("c")] == ["Hi", "Hello!"]
    conversation = repository.get_conversation("c")
    assert conversation is not None
    assert (conversation.title, conversation.metadata) == ("T", {"mine": 1})


def test_other_metadata_of_the_conversation_stays_beside_the_rest_of_a_document(
    run: Run, repository: ChatMemoryRepository
) -> None:
    repository.append("c", Message.user("before"))
    repository.update_conversation("c", metadata={"mine": 1})
    document = {"conversation_id": "c", "temperature": 0.5, "messages": CHAT}
    assert run("import", "-", "--format", "openai", stdin=lines(document)).code == 0
    conversation = repository.get_conversation("c")
    assert conversation is not None
    assert conversation.metadata == {"mine": 1, "openai": {"temperature": 0.5}}


BAD: dict[str, tuple[str, str, str]] = {
    "a path": (
        "openai",
        lines(
            {"conversation_id": "a", "messages": CHAT},
            {"conversation_id": "b", "messages": [*CHAT, {"role": "user", "content": [{"type": "text", "text": 5}]}]},
        ),
        "error: line 2: messages[2].content[0].text: expected str, got int",
    ),
    "a row": (
        "spring-ai",
        lines(*({"conversation_id": "a", "content": "x", "type": kind} for kind in ("USER", "ROBOT"))),
        "error: line 2: type: expected one of SYSTEM, USER, ASSISTANT, TOOL, got 'ROBOT'",
    ),
    "no id": ("openai", lines({"messages": CHAT}), "error: line 1: conversation_id: missing; --conversation ("),
    "an id that isn't one": (
        "openai",
        lines({"conversation_id": 5, "messages": CHAT}),
        "error: line 1: conversation_id: expected text, got int",
    ),
    "a bad id": (
        "openai",
        lines({"conversation_id": "a\u0000", "messages": CHAT}),
        "error: line 1: conversation id 'a\\x00': control characters",
    ),
    "a wrong format": ("anthropic", lines({"conversation_id": "a", "input": []}), "error: line 1: messages: missing; "),
    "a text cut off": (
        "openai",
        json.dumps({"conversation_id": "a", "messages": CHAT}, indent=1)[:-20],
        "error: line 11, column 4: not JSON (",
    ),
    "a line cut off": (
        "openai",
        lines({"conversation_id": "a", "messages": CHAT}) + '{"conversation_id"',
        "error: line 2: not JSON in UTF-8 (",
    ),
    "NaN": (
        "openai",
        '{"conversation_id": "a", "messages": [NaN]}',
        "error: line 1: not JSON in UTF-8 (NaN is not JSON)",
    ),
    "a deep text": ("openai", "[" * 100_000, "error: line 1: not JSON in UTF-8 (nested too deeply)"),
    "a deep value": (
        "openai",
        '{"conversation_id":"a","messages":[{"role":"user","content":"x","y":' + "[" * 300 + "]" * 300 + "}]}",
        "error: line 1: messages[0].y[0]",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_told_with_line_and_path(run: Run, repository: ChatMemoryRepository, case: str) -> None:
    name, given, expected = BAD[case]
    done = run("import", "-", "--format", name, stdin=given)
    assert done.code == 1
    assert expected in done.err
    assert repository.count_messages("b") == 0


def test_what_came_before_a_bad_line_is_kept(run: Run, repository: ChatMemoryRepository) -> None:
    given = lines({"conversation_id": "a", "messages": CHAT}, {"conversation_id": "b", "messages": [5]})
    done = run("import", "-", "--format", "openai", stdin=given)
    assert done.code == 1
    assert "kept 2 messages; repeat the import, nothing is stored twice" in done.err
    assert repository.count_messages("a") == 2


def test_a_name_from_outside_may_not_contradict_the_file(run: Run, repository: ChatMemoryRepository) -> None:
    named = run(
        "import",
        "-",
        "--format",
        "openai",
        "--conversation",
        "x",
        stdin=lines({"conversation_id": "a", "messages": []}),
    )
    assert "error: line 1: conversation_id: the file names 'a' and you 'x'" in named.err
    two = run("import", "-", "--format", "openai", "--conversation", "x", stdin=lines(CHAT, CHAT))
    assert "error: line 2: conversation_id: missing; 'x' is the conversation before" in two.err
    assert repository.count_messages("x") == 2


def test_rows_of_several_conversations_go_to_each(
    run: Run, repository: ChatMemoryRepository, other_database: str
) -> None:
    rows = [{"conversation_id": c, "content": f"{c}{n}", "type": "USER"} for n in range(2) for c in "ab"]
    assert run("import", "-", "--format", "spring-ai", stdin=lines(*rows)).code == 0
    assert [message.text for message in repository.find_by_conversation_id("a")] == ["a0", "a1"]
    assert [message.text for message in repository.find_by_conversation_id("b")] == ["b0", "b1"]
    assert len({message.id for name in "ab" for message in repository.find_by_conversation_id(name)}) == 4


def test_what_a_format_cannot_say_fails_with_its_place_unless_it_may_go(
    run: Run, repository: ChatMemoryRepository, tmp_path: Path
) -> None:
    repository.append("t", [Message.user("Hi"), Message.assistant([Thinking("hm", "sig"), Text("Hello")])])
    target = tmp_path / "out.jsonl"
    done = run("export", "--format", "openai", "-o", str(target))
    assert done.code == 1
    assert "conversation 't': messages[1].parts[0].signature: " in done.err
    assert "--drop-unsupported lets it go" in done.err
    assert not target.exists()
    assert run("export", "--format", "openai", "--drop-unsupported", "-o", str(target)).code == 0
    assert json.loads(target.read_text())["messages"][1] == {
        "role": "assistant",
        "reasoning_content": "hm",
        "content": "Hello",
    }


@pytest.mark.parametrize(
    "given",
    [("export", "--drop-unsupported"), ("import", "-", "--conversation", "x"), ("export", "--format", "os")],
)
def test_options_that_mean_nothing_are_refused(run: Run, repository: ChatMemoryRepository, given: list[str]) -> None:
    assert run(*given).code == 2


def test_one_provider_reads_what_came_from_another(
    run: Run, repository: ChatMemoryRepository, other_database: str
) -> None:
    repository.append("t", [Message.system("S"), Message.user([Text("a"), Media("image/png", b"x")])])
    exported = run("export", "--format", "anthropic").out
    assert run("import", "-", "--format", "anthropic", stdin=exported, url=other_database).code == 0
    with open_repository(other_database) as other:
        found = other.find_by_conversation_id("t")
    assert [message.parts for message in found] == [
        message.parts for message in repository.find_by_conversation_id("t")
    ]
