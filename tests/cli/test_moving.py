"""export, import and copy: what goes in comes out, twice is once, and a bad line says where it is."""

import datetime as dt
import json
import time
from pathlib import Path
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, Media, Message, Text, ToolCall, open_repository

from .conftest import Run

HOUR = dt.timedelta(hours=1)


def snapshot(repository: ChatMemoryRepository) -> dict[str, Any]:
    """Everything a move promises to keep."""
    found = {}
    for conversation in repository.list_conversations(limit=1000).items:
        messages = repository.find_by_conversation_id(conversation.id)
        found[conversation.id] = (conversation.title, conversation.metadata, messages)
    return found


def fill(repository: ChatMemoryRepository) -> None:
    """Conversations of every kind."""
    repository.append("plain", [Message.user(f"m{number}") for number in range(450)])
    call = ToolCall("c", "f", '{"x": 1}')
    parts = (Text("🎉 lone \ud800"), Media("image/png", bytes(range(256))))
    repository.append("rich", [Message.user(parts, metadata={"n": 10**30}), Message.assistant(None, tool_calls=[call])])
    repository.update_conversation("rich", title="T\n罗马", metadata={"tags": ["a"]})
    repository.append("100%s 🎉", [Message.user("")])
    repository.save_all("empty", [])
    repository.update_conversation("empty", title="nothing yet")


def line(conversation_id: str, message: Message, **more: Any) -> str:
    return json.dumps({"type": "message", "conversation_id": conversation_id, "message": message.to_dict(), **more})


def test_an_export_imported_elsewhere_is_the_same_and_twice_is_once(
    run: Run, repository: ChatMemoryRepository, other_database: str
) -> None:
    fill(repository)
    exported = run("export")
    assert exported.code == 0
    first = run("import", "-", stdin=exported.out, url=other_database)
    assert first.code == 0
    assert "imported 453 messages in 4 conversations, 453 of them new" in first.err
    with open_repository(other_database) as other:
        before = snapshot(other), [item.version for item in other.list_conversations().items]
        assert before[0] == snapshot(repository)
        again = run("import", "-", stdin=exported.out, url=other_database)
        assert "0 of them new" in again.err
        assert (snapshot(other), [item.version for item in other.list_conversations().items]) == before
    messages = [text for text in exported.lines if '"type":"message"' in text]
    assert [text for text in run("export", url=other_database).lines if '"type":"message"' in text] == messages


def test_the_lines_of_an_export_have_the_documented_form(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("t", Message.user("x"), ttl=HOUR)
    repository.update_conversation("t", title="T", metadata={"a": 1})
    head, message = (json.loads(text) for text in run("export").lines)
    assert set(head) == {"type", "id", "title", "metadata", "created_at", "updated_at"}
    assert (head["type"], head["id"], head["title"], head["metadata"]) == ("conversation", "t", "T", {"a": 1})
    assert set(message) == {"type", "conversation_id", "expires_at", "message"}
    assert message["conversation_id"] == "t"
    assert dt.datetime.fromisoformat(message["expires_at"]) > dt.datetime.now(dt.UTC)
    assert Message.from_dict(message["message"]).text == "x"


def test_an_export_of_named_conversations_holds_only_them(run: Run, repository: ChatMemoryRepository) -> None:
    fill(repository)
    ids = {json.loads(text).get("id") for text in run("export", "rich", "100%s 🎉", "rich").lines}
    assert ids == {"rich", "100%s 🎉", None}


def test_an_unknown_name_leaves_no_file_behind(run: Run, repository: ChatMemoryRepository, tmp_path: Path) -> None:
    repository.append("t", Message.user("x"))
    assert run("export", "t", "nope", "--output", str(tmp_path / "out.jsonl")).code == 1
    assert not list(tmp_path.glob("*out.jsonl*"))


def test_an_export_to_a_file_replaces_it_when_complete(
    run: Run, repository: ChatMemoryRepository, tmp_path: Path
) -> None:
    repository.append("t", Message.user("x"))
    file = tmp_path / "out.jsonl"
    file.write_text("old")
    done = run("export", "--output", str(file))
    assert (done.code, done.out) == (0, "")
    assert "1 conversation, 1 message written" in done.err
    assert file.read_text() == run("export").out
    assert file.stat().st_mode & 0o077 == 0
    assert run("export", "--output", str(tmp_path / "missing" / "out.jsonl")).code == 1


def test_what_is_left_of_a_life_becomes_the_ttl(
    run: Run, repository: ChatMemoryRepository, other_database: str
) -> None:
    repository.append("t", Message.user("hour"), ttl=HOUR)
    repository.append("t", Message.user("forever"))
    repository.append("t", Message.user("day"), ttl=24 * HOUR)
    expected = [entry.expires_at for entry in repository.history("t").items]
    # The target's own ttl is for messages that say nothing, and "never" says something.
    imported = run("import", "-", stdin=run("export").out, url=f"{other_database}?ttl=1s")
    assert imported.code == 0
    with open_repository(other_database) as other:
        entries = other.history("t").items
    assert [entry.message.text for entry in entries] == ["hour", "forever", "day"]
    for entry, wanted in zip(entries, expected, strict=True):
        if wanted is None or entry.expires_at is None:
            assert entry.expires_at is wanted
        else:
            assert abs(entry.expires_at - wanted) < dt.timedelta(seconds=10)


def test_a_line_without_expires_at_gets_the_ttl_of_the_target(run: Run, other_database: str) -> None:
    run("import", "-", stdin=line("t", Message.user("x")), url=f"{other_database}?ttl=1h")
    with open_repository(other_database) as other:
        assert other.history("t").items[0].expires_at is not None


def test_expired_messages_are_left_out_and_reported(run: Run, repository: ChatMemoryRepository) -> None:
    past, future = "2020-01-01T00:00:00.000000Z", (dt.datetime.now(dt.UTC) + HOUR).isoformat()
    stdin = "\n".join(
        [
            line("t", Message.user("gone"), expires_at=past),
            line("t", Message.user("gone too"), expires_at=past),
            line("t", Message.user("there"), expires_at=future),
            line("only-expired", Message.user("gone"), expires_at=past),
        ]
    )
    done = run("import", "-", stdin=stdin)
    assert done.code == 0
    assert "1 message in 2 conversations, 1 of them new; 3 expired messages left out" in done.err
    assert [message.text for message in repository.find_by_conversation_id("t")] == ["there"]
    assert repository.get_conversation("only-expired") is None


BAD_LINES = [
    ("{", "not JSON"),
    ("[]", "expected a JSON object, got list"),
    ("{}", 'type: expected "conversation" or "message", got None'),
    ('{"type": "message", "message": {"role": "user", "id": "x", "parts": []}}', "conversation_id: missing"),
    ('{"type": "message", "conversation_id": "t", "message": 1}', "message: expected an object"),
    ('{"type": "message", "conversation_id": "t", "message": {"role": "user", "parts": []}}', "message.id: missing"),
    ('{"type": "message", "conversation_id": "t", "message": {"id": "x", "parts": []}}', "message.role: missing"),
    (line("t", Message.user("x"), expires_at="soon"), "expires_at: 'soon' is not an ISO 8601 time"),
    (line("t", Message.user("x"), expires_at="2030-01-01T00:00:00"), "expires_at: has no time zone"),
    (line("t", Message.user("x"), expires_at="9999-01-01T00:00:00Z"), "at most 100 years"),
    (line(" ", Message.user("x")), "white space"),
    ('{"type": "conversation", "id": "t", "title": 1}', "title: expected text or null, got int"),
    ('{"type": "conversation", "id": "t", "metadata": [1]}', "metadata: expected an object, got list"),
    ('{"type": "conversation", "id": "t", "title": "' + "x" * 256 + '"}', "title: at most 255 characters"),
    ('{"type": "message", "x": ' + "[" * 5000 + "]" * 5000 + "}", "line 3"),
    (line("t", Message.user("x", id="taken")), "stored in conversation 't' with another content"),
    (line("t", Message.user("x" * 17_000_000)), "the limit of this backend"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_LINES, ids=[reason for _, reason in BAD_LINES])
@pytest.mark.parametrize("batch", ["1", "200"])
def test_a_bad_line_stops_with_its_number_and_keeps_what_came_before(
    run: Run, repository: ChatMemoryRepository, bad: str, reason: str, batch: str
) -> None:
    repository.append("t", Message.user("earlier", id="taken"))
    good = [line("t", Message.user(text)) for text in ("one", "two", "three")]
    done = run("import", "-", "--batch", batch, stdin="\n".join([good[0], good[1], bad, good[2]]))
    assert done.code == 1
    *_, error = done.err.splitlines()
    assert error.startswith("error: line 3: ")
    assert reason in error
    assert len(error) < 500
    texts = [message.text for message in repository.find_by_conversation_id("t")]
    assert texts[:3] == ["earlier", "one", "two"]
    assert "x" not in texts


def test_bytes_that_are_no_utf_8_are_a_bad_line(run: Run, repository: ChatMemoryRepository) -> None:
    done = run("import", "-", stdin=line("t", Message.user("ok")).encode() + b"\n\xff\xfe\n")
    assert done.code == 1
    assert "error: line 2: not JSON in UTF-8" in done.err
    assert repository.count_messages("t") == 1


def test_byte_order_mark_blank_lines_and_windows_line_ends_are_fine(run: Run, repository: ChatMemoryRepository) -> None:
    text = f"\ufeff{line('t', Message.user('1'))}\r\n\r\n   \n{line('t', Message.user('2'))}"
    assert run("import", "-", stdin=text.encode()).code == 0
    assert repository.count_messages("t") == 2


def test_lines_of_several_conversations_may_alternate(run: Run, repository: ChatMemoryRepository) -> None:
    lines = [line(f"c{number % 2}", Message.user(str(number))) for number in range(6)]
    assert run("import", "-", stdin="\n".join(lines)).code == 0
    assert [message.text for message in repository.find_by_conversation_id("c0")] == ["0", "2", "4"]


def test_an_import_keeps_a_title_that_the_file_does_not_have(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("t", Message.user("x"))
    repository.update_conversation("t", title="mine", metadata={"mine": 1})
    run("import", "-", stdin='{"type": "conversation", "id": "t", "title": null, "metadata": {}}')
    stored = repository.get_conversation("t")
    assert stored is not None
    assert (stored.title, stored.metadata) == ("mine", {"mine": 1})
    run("import", "-", stdin='{"type": "conversation", "id": "t", "title": "theirs"}')
    stored = repository.get_conversation("t")
    assert stored is not None
    assert (stored.title, stored.metadata) == ("theirs", {"mine": 1})


def test_an_import_from_a_file_that_is_not_there_makes_no_database(run: Run, tmp_path: Path) -> None:
    done = run("import", "nope.jsonl", url=f"sqlite:///{tmp_path}/new.db")
    assert done.code == 1
    assert done.err == "error: nope.jsonl: No such file or directory\n"
    assert not (tmp_path / "new.db").exists()


def test_a_copy_is_complete_verified_and_repeatable(
    run: Run, repository: ChatMemoryRepository, database: str, other_database: str
) -> None:
    fill(repository)
    first = run("copy", database, other_database, url=None)
    assert first.code == 0
    assert "453 of them new" in first.err
    assert "verified: the same number of messages in every conversation" in first.err
    with open_repository(other_database) as other:
        assert snapshot(other) == snapshot(repository)
        assert "0 of them new" in run("copy", database, other_database, url=None).err
        # What an interrupted copy left out is added.
        other.delete_by_conversation_id("rich")
        assert "2 of them new" in run("copy", database, other_database, url=None).err
        # Expired messages of the source are not looked for at the target.
        repository.append("plain", Message.user("short"), ttl=dt.timedelta(milliseconds=200))
        time.sleep(0.25)
        assert "verified" in run("copy", database, other_database, url=None).err
        # A target that went on since the first copy is not a failure.
        other.append("plain", Message.user("later"))
        more = run("copy", database, other_database, url=None)
    assert more.code == 0
    assert "conversation 'plain': 450 messages at the source, 451 at the target" in more.err


def test_a_copy_that_loses_messages_fails_with_the_conversations(
    run: Run, repository: ChatMemoryRepository, database: str, other_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.append("t", [Message.user("1"), Message.user("2")])
    real = ChatMemoryRepository.append

    def lossy(self: ChatMemoryRepository, conversation_id: str, messages: Any, **options: Any) -> int:
        return real(self, conversation_id, list(messages)[:1], **options)

    monkeypatch.setattr(ChatMemoryRepository, "append", lossy)
    done = run("copy", database, other_database, url=None)
    assert done.code == 1
    assert "conversation 't': 2 messages at the source, 1 at the target" in done.err
    assert "error: 1 message of 1 conversation did not arrive" in done.err


def test_a_copy_onto_itself_is_refused(run: Run, repository: ChatMemoryRepository, database: str) -> None:
    assert run("copy", database, database, url=None).code == 2


def test_a_copy_stays_with_one_owner(
    run: Run, repository: ChatMemoryRepository, database: str, other_database: str
) -> None:
    repository.append("nobody", Message.user("x"))
    assert run("copy", database, other_database, "--owner", "neighbour", url=None).code == 0
    with open_repository(other_database) as other:
        assert other.find_conversation_ids() == []
        assert other.for_owner("neighbour").find_conversation_ids() == ["thread"]
