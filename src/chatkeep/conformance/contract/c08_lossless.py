"""C8 lossless: what was stored comes back equal, for every kind of message and every field."""

from __future__ import annotations

import datetime as dt
import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from chatkeep import ChatMemoryRepository, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from chatkeep.conformance import strategies
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import messages_of, new_id, said, whole_history

# The repository is shared between examples on purpose: each example uses conversations of its own.
in_one_repository = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)

DEEP: dict[str, Any] = {"level": 0}
for _level in range(1, 95):
    DEEP = {"level": _level, "inner": [DEEP]}

EVERY_KIND = {
    "plain text": Message.user("Hi"),
    "empty text": Message.user(""),
    "no parts": Message("assistant"),
    "two texts": Message.user([Text("one"), Text("two")]),
    "two equal texts": Message.user([Text("same"), Text("same")]),
    "an empty text beside a text": Message.user([Text(""), Text("x")]),
    "text with newlines": Message.user("\n a \r\n b \n\n"),
    "name": Message.user("Hi", name="Ann"),
    "empty name": Message.user("Hi", name=""),
    "metadata": Message.user("Hi", metadata={"a": [1, {"b": None}], "": {}}),
    "deep metadata": Message.user("Hi", metadata=DEEP),
    "extra": Message("user", (Text("Hi", {"cache_control": {"type": "ephemeral"}}),), extra={"vendor": [1, 2.5]}),
    "system": Message.system("Be kind."),
    "an open role": Message("critic", (Text("Hm."),)),
    "tool calls": Message.assistant(
        "Let me look.", tool_calls=[ToolCall("call_1", "weather", '{"city": "Rome"}'), ToolCall("call_2", "time")]
    ),
    "tool calls alone": Message.assistant(tool_calls=[ToolCall("call_1", "weather", "{}", {"index": 0})]),
    "arguments that are no JSON": Message.assistant(tool_calls=[ToolCall("c", "f", '{"broken": ')]),
    "arguments with odd spacing": Message.assistant(tool_calls=[ToolCall("c", "f", ' {"a" :1.0,\n"a": 2} ')]),
    "empty arguments": Message.assistant(tool_calls=[ToolCall("", "", "")]),
    "tool result": Message.tool("sunny", call_id="call_1", name="weather"),
    "empty tool result": Message.tool("", call_id="call_1"),
    "failed tool result": Message.tool("no such city", call_id="call_1", is_error=True),
    "tool result of parts": Message.tool([Text("see"), Media("image/png", b"\x89PNG")], call_id="call_1"),
    "tool result of one text part": Message.tool([Text("see")], call_id="call_1"),
    "tool result of no parts": Message("tool", (ToolResult("call_1", ()),)),
    "two results": Message("tool", (ToolResult("a", "1"), ToolResult("b", "2", "f", True))),
    "thinking": Message.assistant([Thinking("Hmm.", "c2lnbmF0dXJl"), Text("Yes.")]),
    "thinking without signature": Message.assistant([Thinking("")]),
    "thinking with an empty signature": Message.assistant([Thinking("", "")]),
    "every byte": Message.user([Media("application/octet-stream", bytes(range(256)) * 3)]),
    "no bytes": Message.user([Media("image/png", b"")]),
    "media by url": Message.user([Text("Look"), Media("image/png", url="https://example.org/ü?a=%2F#x", name="ü.png")]),
    "media with an empty url": Message.user([Media("", url="", name="")]),
    "opaque": Message("assistant", (Opaque("server_tool_use", {"id": "x", "input": [None, True, 1, 1.0, "ü"]}),)),
    "opaque without data": Message("assistant", (Opaque("ping"), Opaque("", []), Opaque("x", {}), Opaque("y", ""))),
    "opaque that looks like a part": Message("user", (Opaque("text", {"type": "text", "text": "no"}),)),
    "microseconds": Message.user("Hi", created_at=dt.datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)),
    "an id of one's own": Message.user("Hi", id="msg_01ABC/é 😀"),
}


class TestC08Lossless:
    """load(dump(m)) == m."""

    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_every_kind_of_message_comes_back_equal(
        self, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """All kinds in one conversation, through every read."""
        messages = list(EVERY_KIND.values())
        getattr(repository, call)(conversation_id, messages)
        for kind, message, found in zip(
            EVERY_KIND, messages, repository.find_by_conversation_id(conversation_id), strict=True
        ):
            assert found == message, kind
        assert messages_of(whole_history(repository, conversation_id, 7)) == messages

    def test_none_and_empty_stay_apart(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """A missing name, signature or url is None, an empty one is "", on engines that take one for the other too."""
        repository.append(
            conversation_id,
            [
                Message.user("", name=None),
                Message.user("", name=""),
                Message.assistant([Thinking("", None), Thinking("", "")]),
                Message("tool", (ToolResult("", "", None), ToolResult("", "", ""))),
            ],
        )
        first, second, third, fourth = repository.find_by_conversation_id(conversation_id)
        assert (first.name, second.name) == (None, "")
        assert [part.signature for part in third.parts if isinstance(part, Thinking)] == [None, ""]
        assert [part.name for part in fourth.tool_results] == [None, ""]

    @in_one_repository
    @given(messages=strategies.conversations)
    def test_generated_messages_come_back_equal_from_append(
        self, repository: ChatMemoryRepository, messages: list[Message]
    ) -> None:
        """Any text, any JSON value, any combination of parts."""
        conversation_id = new_id()
        repository.append(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert messages_of(repository.history(conversation_id).items) == messages

    @in_one_repository
    @given(old=strategies.conversations, new=strategies.conversations)
    def test_generated_messages_come_back_equal_from_save_all(
        self, repository: ChatMemoryRepository, old: list[Message], new: list[Message]
    ) -> None:
        """A list that replaces another."""
        conversation_id = new_id()
        repository.save_all(conversation_id, old)
        repository.save_all(conversation_id, new)
        assert repository.find_by_conversation_id(conversation_id) == new

    @in_one_repository
    @given(messages=strategies.conversations)
    def test_what_was_read_may_be_written_again(
        self, repository: ChatMemoryRepository, messages: list[Message]
    ) -> None:
        """Copying a conversation, and repeating an append with what was read, change nothing."""
        first, copy = new_id(), new_id()
        version = repository.append(first, messages)
        found = repository.find_by_conversation_id(first)
        assert repository.append(first, found) == version
        repository.save_all(copy, found)
        assert repository.find_by_conversation_id(copy) == messages

    def test_order_of_metadata_keys_is_kept(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """JSON columns of some engines sort keys; what goes back to a provider must not change."""
        metadata = {"b": 1, "a": 2, "aa": {"z": 1, "y": 2}, "B": 3}
        repository.append(conversation_id, Message.user("Hi", metadata=metadata))
        (found,) = repository.find_by_conversation_id(conversation_id)
        assert json.dumps(found.metadata) == json.dumps(metadata)

    @needs("overwrite_message")
    def test_rows_of_released_formats_stay_readable(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Rows as earlier versions wrote them, kept in golden files, give the messages they always gave."""
        golden = [
            case
            for file in sorted(resources.files("chatkeep.conformance").joinpath("golden").iterdir(), key=str)
            if file.name.endswith(".json")
            for case in json.loads(file.read_text(encoding="utf-8"))
        ]
        assert len(golden) >= 8
        placeholders = said(len(golden))
        repository.append(conversation_id, placeholders)
        for placeholder, case in zip(placeholders, golden, strict=True):
            harness.overwrite_message(namespace, placeholder.id, **case["row"])
        found = repository.find_by_conversation_id(conversation_id)
        for placeholder, case, message in zip(placeholders, golden, found, strict=True):
            expected = {**case["message"], "id": placeholder.id, "created_at": placeholder.to_dict()["created_at"]}
            assert message == Message.from_dict(expected), case["kind"]

    @needs("overwrite_message", "stored_content")
    def test_the_stored_form_is_the_golden_one(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """What this version writes of those messages has the readable text that the golden files say."""
        file = resources.files("chatkeep.conformance").joinpath("golden", "chatkeep-1.json")
        golden = json.loads(file.read_text(encoding="utf-8"))
        messages = [Message.from_dict(case["message"]) for case in golden]
        repository.append(conversation_id, messages)
        stored = harness.stored_content(namespace, conversation_id)
        assert stored == [case["row"]["content"] for case in golden]
