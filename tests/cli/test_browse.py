"""ls and show, as a program reads them; test_terminal.py looks at them as a person does."""

import datetime as dt
import json
import sqlite3

import pytest

from chatkeep import ChatMemoryRepository, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult, open_repository

from .conftest import Run

WEIRD_IDS = ["emoji-🎉", "100%s", "-x", "--yes", "日本語の会話", "a b", "[bold]", "'quoted\"", "w" * 255]


def test_an_empty_database_lists_nothing_and_says_so_apart_from_the_data(
    run: Run, repository: ChatMemoryRepository
) -> None:
    listed = run("ls")
    assert (listed.code, listed.out) == (0, "")
    assert run("ls", "--json").out == ""


def test_ls_gives_one_line_of_columns_for_each_conversation(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("a", [Message.user("1"), Message.assistant("2")])
    repository.update_conversation("a", title="tab\tand\nline")
    repository.append("b", [Message.user("1")])
    listed = run("ls")
    assert listed.code == 0
    assert [line.split("\t")[:3] for line in listed.lines] == [["b", "", "1"], ["a", "tab and line", "2"]]
    assert [line.split("\t")[0] for line in run("ls", "--order", "id").lines] == ["a", "b"]


def test_ls_json_has_every_field(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("a", [Message.user("1")])
    repository.update_conversation("a", title="T 罗马", metadata={"k": [1, None]})
    (line,) = run("ls", "--json").lines
    data = json.loads(line)
    assert data.pop("created_at").endswith("Z")
    assert data.pop("updated_at").endswith("Z")
    assert data.pop("version") > 0
    assert data == {"id": "a", "owner": "", "title": "T 罗马", "metadata": {"k": [1, None]}, "message_count": 1}


@pytest.mark.parametrize("order", ["id", "updated"])
def test_limit_and_cursor_walk_through_the_whole_list_once(run: Run, order: str) -> None:
    url = "inprocess:walk-" + order
    with open_repository(url) as repository:
        for number in range(10):
            repository.append(f"c{number}", [Message.user("x")])
        everything = run("ls", "--order", order, url=url).lines
        assert len(everything) == 10
        assert run("ls", "--order", order, "--limit", "3", url=url).lines == everything[:3]
        cursor = repository.list_conversations(limit=3, order=order).next_cursor  # type: ignore[arg-type]
        assert run("ls", "--order", order, "--cursor", str(cursor), url=url).lines == everything[3:]
        other = "updated" if order == "id" else "id"
        refused = run("ls", "--order", other, "--cursor", str(cursor), url=url)
    assert refused.code == 2
    assert "--cursor" in refused.err


def test_ten_thousand_conversations_come_page_by_page(run: Run) -> None:
    url = "inprocess:ten-thousand"
    with open_repository(url) as repository:
        message = Message.user("x")
        for number in range(10_000):
            repository.append(f"c{number:05}", message)
    listed = run("ls", "--order", "id", url=url)
    assert [line.split("\t")[0] for line in listed.lines] == [f"c{number:05}" for number in range(10_000)]


def test_owner_chooses_whose_conversations_are_meant(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("mine", [Message.user("x")])
    assert run("ls", "--owner", "neighbour").lines[0].startswith("thread\t")
    assert "not yours" in run("show", "thread", "--owner", "neighbour").out
    missing = run("show", "mine", "--owner", "neighbour")
    assert missing.code == 1
    assert "'neighbour'" in missing.err


@pytest.mark.parametrize("conversation_id", WEIRD_IDS)
def test_weird_ids_are_listed_and_shown(run: Run, repository: ChatMemoryRepository, conversation_id: str) -> None:
    repository.append(conversation_id, [Message.user("found it")])
    assert run("ls").lines[0].split("\t")[0] == conversation_id
    shown = run("show", "--", conversation_id)
    assert shown.code == 0
    assert shown.lines[0] == conversation_id
    assert "found it" in shown.out
    assert run("delete", "--yes", "--", conversation_id).code == 0
    assert repository.get_conversation(conversation_id) is None


@pytest.mark.parametrize("command", [["show"], ["export"], ["delete", "--yes"]])
def test_an_unknown_conversation_is_one_line_and_exit_1(
    run: Run, repository: ChatMemoryRepository, command: list[str]
) -> None:
    outcome = run(*command, "nope")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("error: there is no conversation 'nope'; `chatkeep ls` lists them")


@pytest.mark.parametrize("bad", ["", " x", "a\x00b", "n" * 256])
def test_an_id_that_can_not_exist_is_one_line_and_exit_1(run: Run, repository: ChatMemoryRepository, bad: str) -> None:
    outcome = run("show", bad)
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1


def test_a_transcript_shows_every_kind_of_part(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append(
        "t",
        [
            Message.user((Text("look"), Media("image/png", b"x" * 12_000, name="map.png")), name="alice"),
            Message(
                "assistant",
                (Thinking("hmm"), ToolCall("c1", "weather", '{"city":"Rome"}'), ToolCall("c2", "search", "not json")),
                metadata={"model": "m"},
            ),
            Message.tool("sunny\n24 C", call_id="c1"),
            Message(
                "tool", (ToolResult("c9", (Text("stray"), Media("audio/wav", url="https://x/y.wav")), is_error=True),)
            ),
            Message("narrator", (Opaque("redacted", {"a": 1}),)),
            Message("assistant", ()),
            Message.user(""),
        ],
        ttl=dt.timedelta(hours=1),
    )
    repository.update_conversation("t", title="Trip", metadata={"tag": "x"})
    shown = run("show", "t")
    assert shown.code == 0
    for text in (
        "t  Trip",
        '{"tag":"x"}',
        "user (alice)",
        "[image/png, map.png, 12 KB]",
        "thinking: hmm",
        '→ weather {"city":"Rome"}  c1',
        "→ search not json  c2",
        '{"model":"m"}',
        "← weather  c1",
        "    24 C",
        "← result  c9  (its call is not shown here)  error",
        "[audio/wav, https://x/y.wav]",
        "narrator",
        '[redacted, {"a":1}]',
        "(no content)",
        "(empty text)",
        "expires",
        "1 tool call without a result: search (c2)",
    ):
        assert text in shown.out


def test_a_call_id_used_twice_is_answered_in_order(run: Run, repository: ChatMemoryRepository) -> None:
    for name in ("first", "second"):
        repository.append("t", [Message.assistant(None, tool_calls=[ToolCall("same", name)])])
        repository.append("t", [Message.tool("done", call_id="same")])
    out = run("show", "t").out
    assert out.index("← first") < out.index("→ second") < out.index("← second")
    assert "without a result" not in out


def test_long_arguments_are_laid_out_and_stay_as_they_are_where_they_are_no_json(
    run: Run, repository: ChatMemoryRepository
) -> None:
    long = {"query": "q" * 100, "limit": 3}
    calls = [ToolCall("c1", "search", json.dumps(long)), ToolCall("c2", "search", "{" + "q" * 100)]
    repository.append("t", [Message.assistant(None, tool_calls=calls)])
    out = run("show", "t").out
    assert '      "limit": 3\n' in out
    assert "{" + "q" * 100 in out


def test_stored_text_can_not_drive_the_terminal(run: Run, repository: ChatMemoryRepository) -> None:
    evil = "\x1b]0;pwned\x07\x1b[2J\x9b31m[red]x[/red] :smile:"
    repository.append(
        "evil",
        [
            Message.user(evil, name=evil, metadata={evil: evil}),
            Message(
                "assistant",
                (Thinking(evil), ToolCall(evil, evil, evil), Media(evil, url=evil, name=evil), Opaque(evil, evil)),
            ),
            Message.tool(evil, call_id=evil),
        ],
    )
    repository.update_conversation("evil", title=evil, metadata={evil: evil})
    for outcome in (run("show", "evil"), run("ls"), run("show", evil), run("delete", "evil", "--yes")):
        for stream in (outcome.out, outcome.err):
            assert not {"\x1b", "\x07", "\x9b"} & set(stream)
        assert "[red]x[/red] :smile:" in outcome.out + outcome.err


def test_limit_shows_the_newest_messages_oldest_first(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("t", [Message.user(f"<{number}>") for number in range(450)])
    for limit in (1, 2, 200, 201, 449, 450, 1000):
        lines = run("show", "t", "--json", "--limit", str(limit)).lines
        texts = [json.loads(line)["message"]["parts"][0]["text"] for line in lines]
        assert texts == [f"<{number}>" for number in range(450)][-limit:]
    assert run("show", "t", "--limit", "0").code == 2


def test_show_json_gives_messages_that_come_back_equal(run: Run, repository: ChatMemoryRepository) -> None:
    messages = [Message.user("lone \ud800 and 🎉", metadata={"big": 10**30}), Message.assistant("x")]
    repository.append("t", messages)
    lines = [json.loads(line) for line in run("show", "t", "--json").lines]
    assert [Message.from_dict(line["message"]) for line in lines] == messages
    assert lines[0]["position"] < lines[1]["position"]


def test_a_conversation_without_messages_is_shown_as_empty(run: Run, repository: ChatMemoryRepository) -> None:
    repository.save_all("empty", [])
    shown = run("show", "empty")
    assert shown.code == 0
    assert "(no messages)" in shown.out


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_corrupt_row_is_named_with_its_position_and_can_be_kept(run: Run, tmp_path: object, command: str) -> None:
    file = f"{tmp_path}/corrupt.db"
    url = f"sqlite:///{file}"
    with open_repository(url) as repository:
        repository.append("t", [Message.user("before"), Message.user("x", metadata={"a": 1}), Message.user("after")])
        position = repository.history("t").items[1].position
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE chat_message SET body = '{broken \x1b[31m' WHERE body IS NOT NULL")
    connection.close()
    refused = run(command, "t", url=url)
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert f"position {position}" in refused.err
    assert "--keep-unreadable" in refused.err
    kept = run(command, "t", "--keep-unreadable", url=url)
    assert kept.code == 0
    assert "before" in kept.out
    assert "after" in kept.out
    assert "\x1b" not in kept.out
