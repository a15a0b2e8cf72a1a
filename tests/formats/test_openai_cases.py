"""OpenAI's format, case by case: what becomes of each kind of message, and that the dict comes back equal."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from chatkeep import InvalidMessageError, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult, open_repository
from chatkeep.errors import UnstorableValueError
from chatkeep.formats.openai import from_openai, messages_from_openai, messages_to_openai, to_openai

ROOT = Path(__file__).parents[2]
PNG = "data:image/png;base64,iVBORw0KGgo="
PNG_BYTES = b"\x89PNG\r\n\x1a\n"
PDF = "data:application/pdf;base64,JVBERi0="
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1,"b":2}'}}


def note(**rest: Any) -> dict[str, Any]:
    return {"openai": rest}


# An OpenAI dict and the Message fields that it becomes. The list is the documentation of the mapping.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "text": ({"role": "user", "content": "Hi"}, {"parts": (Text("Hi"),)}),
    "empty text": ({"role": "user", "content": ""}, {"parts": (Text(""),)}),
    "null content": ({"role": "assistant", "content": None}, {"parts": ()}),
    "no content": ({"role": "assistant"}, {"parts": (), "extra": note(content="missing")}),
    "empty list": ({"role": "user", "content": []}, {"parts": (), "extra": note(content="list")}),
    "one text in a list": (
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"parts": (Text("Hi"),), "extra": note(content="list")},
    ),
    "two texts": (
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"parts": (Text("a"), Text("b"))},
    ),
    "text with a cache mark": (
        {"role": "system", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
        {"parts": (Text("a", note(cache_control={"type": "ephemeral"})),)},
    ),
    "developer": ({"role": "developer", "content": "Be brief"}, {"parts": (Text("Be brief"),)}),
    "a role of tomorrow": ({"role": "critic", "content": "Hm"}, {"parts": (Text("Hm"),)}),
    "name": ({"role": "user", "name": "Anna", "content": "Hi"}, {"parts": (Text("Hi"),), "name": "Anna"}),
    "null name": ({"role": "user", "name": None, "content": "Hi"}, {"parts": (Text("Hi"),), "extra": note(name=None)}),
    "a response as the SDK dumps it": (
        {"role": "assistant", "content": "Hi", "refusal": None, "annotations": [], "audio": None, "tool_calls": None},
        {"parts": (Text("Hi"),), "extra": note(refusal=None, annotations=[], audio=None, tool_calls=None)},
    ),
    "annotations and audio": (
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}, "annotations": [{"type": "url_citation"}]},
        {"parts": (), "extra": note(audio={"id": "audio_1"}, annotations=[{"type": "url_citation"}])},
    ),
    "unknown fields": (
        {"role": "assistant", "content": "x", "id": "msg_1", "provider": {"deep": [1, 2.5, None, "\x00"]}},
        {"parts": (Text("x"),), "extra": note(id="msg_1", provider={"deep": [1, 2.5, None, "\x00"]})},
    ),
    "refusal": (
        {"role": "assistant", "content": None, "refusal": "No."},
        {"parts": (Text("No.", note(type="message.refusal")),)},
    ),
    "refusal as a part": (
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No.", "why": 1}]},
        {"parts": (Text("No.", note(type="refusal", why=1)),)},
    ),
    "reasoning": (
        {"role": "assistant", "content": "4", "reasoning_content": "2+2"},
        {"parts": (Thinking("2+2"), Text("4"))},
    ),
    "linked image": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.org/a.JPG?s=1"}}]},
        {"parts": (Media("image/jpeg", url="https://x.org/a.JPG?s=1"),)},
    ),
    "linked image of unknown type, with detail": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.org/a", "detail": "low"}}]},
        {"parts": (Media("image/*", url="https://x.org/a", extra=note(image_url={"detail": "low"})),)},
    ),
    "embedded image": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]},
        {"parts": (Media("image/png", PNG_BYTES),)},
    ),
    "embedded image that encodes otherwise": (
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgp="}}],
        },
        {"parts": (Media("image/*", url="data:image/png;base64,iVBORw0KGgp="),)},
    ),
    "a document given as an image": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PDF}}]},
        {"parts": (Media("application/pdf", b"%PDF-", extra=note(type="image_url")),)},
    ),
    "audio": (
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAEC", "format": "mp3"}}]},
        {"parts": (Media("audio/mpeg", b"\x00\x01\x02"),)},
    ),
    "file": (
        {"role": "user", "content": [{"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}}]},
        {"parts": (Media("application/pdf", b"%PDF-", name="a.pdf"),)},
    ),
    "image as a file, name null": (
        {"role": "user", "content": [{"type": "file", "file": {"file_data": PNG, "filename": None}, "x": 1}]},
        {"parts": (Media("image/png", PNG_BYTES, extra=note(type="file", x=1, file={"filename": None})),)},
    ),
    "file by id": (
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
        {"parts": (Opaque("openai.content", {"type": "file", "file": {"file_id": "file-1"}}),)},
    ),
    "a part of tomorrow": (
        {"role": "user", "content": [{"type": "hologram", "hologram": {"z": 1}}]},
        {"parts": (Opaque("openai.content", {"type": "hologram", "hologram": {"z": 1}}),)},
    ),
    "tool calls without content": (
        {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "c2"}]},
        {"parts": (ToolCall("c1", "add", '{"a": 1,"b":2}'), ToolCall("c2", "add", '{"a": 1,"b":2}'))},
    ),
    "tool call with text and broken arguments": (
        {
            "role": "assistant",
            "content": "Wait",
            "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"a'}}],
        },
        {"parts": (Text("Wait"), ToolCall("c1", "f", '{"a'))},
    ),
    "tool call with unknown fields": (
        {
            "role": "assistant",
            "tool_calls": [{**CALL, "index": 0, "function": {"name": "f", "arguments": "", "strict": True}}],
        },
        {
            "parts": (ToolCall("c1", "f", "", note(index=0, function={"strict": True})),),
            "extra": note(content="missing"),
        },
    ),
    "tool call without type": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"parts": (ToolCall("c", "f", "{}", note(type="missing")),)},
    ),
    "custom tool call": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}],
        },
        {"parts": (ToolCall("c", "sql", "SELECT 1", note(type="custom")),)},
    ),
    "a call of tomorrow": (
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "telepathy", "thought": "x"}]},
        {"parts": (Opaque("openai.tool_call", {"id": "c", "type": "telepathy", "thought": "x"}),)},
    ),
    "empty list of calls": (
        {"role": "assistant", "content": "x", "tool_calls": []},
        {"parts": (Text("x"),), "extra": note(tool_calls=[])},
    ),
    "function call (legacy)": (
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}", "x": 1}},
        {"parts": (ToolCall("f", "f", "{}", note(type="message.function_call", function_call={"x": 1})),)},
    ),
    "tool result": (
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"parts": (ToolResult("c1", "3"),)},
    ),
    "tool result with name and unknown field": (
        {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "3", "cached": True},
        {"parts": (ToolResult("c1", "3", "add", extra=note(cached=True)),)},
    ),
    "tool result in parts": (
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "3"}]},
        {"parts": (ToolResult("c1", (Text("3"),)),)},
    ),
    "tool result without parts": (
        {"role": "tool", "tool_call_id": "c1", "content": []},
        {"parts": (ToolResult("c1", ()),)},
    ),
    "tool result null": (
        {"role": "tool", "tool_call_id": "c1", "content": None},
        {"parts": (ToolResult("c1", "", extra=note(content="null")),)},
    ),
    "tool result missing": (
        {"role": "tool", "tool_call_id": "c1", "name": None},
        {"parts": (ToolResult("c1", "", extra=note(name=None, content="missing")),)},
    ),
    "function result (legacy)": (
        {"role": "function", "name": "f", "content": "3"},
        {"parts": (ToolResult("f", "3", "f"),)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_dict_becomes_this_message_and_comes_back_equal(case: str) -> None:
    given, fields = CASES[case]
    before = json.dumps(given)
    message = from_openai(given)
    expected = Message(given["role"], id=message.id, created_at=message.created_at, **fields)
    assert message == expected
    assert to_openai(message) == given
    assert json.dumps(given) == before, "the caller's dict was changed"


@pytest.mark.parametrize("case", CASES)
def test_a_dict_comes_back_equal_from_the_dict_form_of_the_message(case: str) -> None:
    given, _ = CASES[case]
    stored = json.loads(json.dumps(from_openai(given).to_dict()))
    assert to_openai(Message.from_dict(stored)) == given


def test_all_cases_come_back_equal_from_a_repository() -> None:
    given = [dict_ for dict_, _ in CASES.values()]
    with open_repository("inprocess:") as repository:
        repository.append("neighbour", Message.user("stays"))
        repository.append("cases", messages_from_openai(given))
        assert messages_to_openai(repository.find_by_conversation_id("cases")) == given


def test_the_example_conversation_comes_back_equal() -> None:
    conversation = json.loads((ROOT / "examples/conversation.json").read_text(encoding="utf-8"))
    assert messages_to_openai(messages_from_openai(conversation)) == conversation


BAD: dict[str, tuple[Any, str]] = {
    "no dict": ("hello", r"^message: expected a dict, got str.*model_dump"),
    "no role": ({"content": "x"}, r"^message\.role: missing"),
    "role no str": ({"role": 1}, r"^message\.role: expected str, got int"),
    "role unstorable": ({"role": " user"}, r"^role ' user'"),
    "content number": ({"role": "user", "content": 5}, r"^message\.content: expected str, list or null, got int"),
    "part no object": ({"role": "user", "content": ["x"]}, r"^message\.content\[0\]: expected an object, got str"),
    "part without type": ({"role": "user", "content": [{"text": "x"}]}, r"^message\.content\[0\]\.type: missing"),
    "text null": ({"role": "user", "content": [{"type": "text", "text": None}]}, r"\.text: expected str, got null"),
    "image as str": (
        {"role": "user", "content": [{"type": "image_url", "image_url": "https://x"}]},
        r"^message\.content\[0\]\.image_url: expected dict, got str",
    ),
    "detail": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x", "detail": 1}}]},
        r"image_url\.detail: expected str or null, got int",
    ),
    "calls no list": (
        {"role": "assistant", "tool_calls": {}},
        r"^message\.tool_calls: expected list or null, got dict",
    ),
    "call without id": (
        {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": ""}}]},
        r"^message\.tool_calls\[0\]\.id: missing",
    ),
    "arguments as object": (
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {"a": 1}}}]},
        r"^message\.tool_calls\[0\]\.function\.arguments: expected str, got dict",
    ),
    "type null": ({"role": "assistant", "tool_calls": [{**CALL, "type": None}]}, r"\.type: expected str, got null"),
    "result without call": ({"role": "tool", "content": "x"}, r"^message\.tool_call_id: missing"),
    "function without name": ({"role": "function", "content": "x"}, r"^message\.name: missing"),
    "refusal": ({"role": "assistant", "refusal": True}, r"^message\.refusal: expected str, got bool"),
    "audio": ({"role": "assistant", "audio": "x"}, r"^message\.audio: expected dict or null, got str"),
    "NaN": ({"role": "user", "content": "x", "p": [float("nan")]}, r"^message\.p\[0\]: nan is not JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_dict_is_refused_with_the_path(case: str) -> None:
    given, pattern = BAD[case]
    with pytest.raises(InvalidMessageError, match=pattern):
        from_openai(given)


def test_a_value_that_is_no_json_is_refused_with_the_path() -> None:
    with pytest.raises(UnstorableValueError, match=r"^message\.usage: tuple"):
        from_openai({"role": "user", "content": "x", "usage": (1, 2)})


def test_a_wrong_dict_in_a_list_is_named_by_its_index() -> None:
    with pytest.raises(InvalidMessageError, match=r"^messages\[1\]\.content: expected"):
        messages_from_openai([{"role": "user", "content": "x"}, {"role": "user", "content": 1}])


@pytest.mark.parametrize("given", ["text", {"role": "user", "content": "x"}, 5])
def test_one_message_in_place_of_a_list_is_refused(given: Any) -> None:
    with pytest.raises(InvalidMessageError, match="expected a list of objects"):
        messages_from_openai(given)


# What OpenAI's format can't say: the path of the refusal, and what is left of the message when losses are accepted.
LOSSES: dict[str, tuple[Message, str, list[dict[str, Any]]]] = {
    "signature": (
        Message.assistant([Thinking("t", "sig"), Text("a")]),
        r"^parts\[0\]\.signature: ",
        [{"role": "assistant", "reasoning_content": "t", "content": "a"}],
    ),
    "failed call": (
        Message.tool("boom", call_id="c", is_error=True),
        r"^parts\[0\]\.is_error: ",
        [{"role": "tool", "tool_call_id": "c", "content": "boom"}],
    ),
    "another provider's notes": (
        Message.user([Text("a", {"anthropic": 1})]),
        r"^parts\[0\]\.extra\.anthropic: ",
        [{"role": "user", "content": "a"}],
    ),
    "opaque": (
        Message.user([Text("a"), Opaque("x", 1)]),
        r"^parts\[1\]: Opaque 'x'",
        [{"role": "user", "content": "a"}],
    ),
    "nothing but opaque": (Message.user([Opaque("x", 1)]), r"^parts\[0\]: Opaque 'x'", []),
    "opaque that has a part": (
        Message.user([Opaque("openai.content", {"type": "text", "text": "a"})]),
        r"^parts\[0\]: .* part of its own",
        [],
    ),
    "linked sound": (Message.user([Media("audio/wav", url="https://x/a.wav")]), r"a link to audio/wav", []),
    "name of an image": (
        Message.user([Media("image/png", PNG_BYTES, name="cat")]),
        r"^parts\[0\]\.name: ",
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}],
    ),
    "text behind a call": (
        Message.assistant([ToolCall("c1", "add", '{"a": 1,"b":2}'), Text("a")]),
        r"^parts\[1\]: a part of content behind one of tool_calls",
        [{"role": "assistant", "content": "a", "tool_calls": [CALL]}],
    ),
    "two reasonings": (
        Message.assistant([Thinking("1"), Thinking("2"), Text("a")]),
        r"^parts\[1\]: OpenAI has room for one part of reasoning_content",
        [{"role": "assistant", "reasoning_content": "1", "content": "a"}],
    ),
    "name of a tool message": (
        Message("tool", (ToolResult("c", "3"),), name="Anna"),
        r"^name: ",
        [{"role": "tool", "tool_call_id": "c", "content": "3"}],
    ),
    "text of a tool message": (Message("tool", (Text("3"),)), r"^parts: a message of role 'tool'", []),
    "a note against the field": (
        Message.user([Text("a", note(text="b"))]),
        r"^parts\[0\]\.extra\.openai\.text: ",
        [{"role": "user", "content": "a"}],
    ),
    "a form that doesn't fit": (
        Message("assistant", (Text("a"),), extra=note(content="missing")),
        r"^extra\.openai\.content: ",
        [{"role": "assistant", "content": "a"}],
    ),
}


@pytest.mark.parametrize("case", LOSSES)
def test_what_the_format_cannot_say_is_refused_or_left_out_when_asked(case: str) -> None:
    message, pattern, left = LOSSES[case]
    with pytest.raises(InvalidMessageError, match=pattern):
        to_openai(message)
    with pytest.raises(InvalidMessageError, match=r"^messages\[0\]\."):
        messages_to_openai([message])
    assert messages_to_openai([message], drop_unsupported=True) == left


def test_reasoning_can_be_left_out_for_those_who_do_not_know_it() -> None:
    message = Message.assistant([Thinking("hm", "signature"), Text("4")])
    assert to_openai(message, reasoning=False) == {"role": "assistant", "content": "4"}
    assert messages_to_openai([Message.assistant([Thinking("hm")])], reasoning=False) == []


def test_several_results_in_one_message_become_several_tool_messages() -> None:
    message = Message.user([ToolResult("c1", "1"), ToolResult("c2", "2"), Text("And now?")], name="Anna")
    assert messages_to_openai([message]) == [
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {"role": "user", "name": "Anna", "content": "And now?"},
    ]
    with pytest.raises(InvalidMessageError, match="makes 3 OpenAI messages, not one; use messages_to_openai"):
        to_openai(message)


def test_id_time_and_metadata_can_be_given_back() -> None:
    message = Message.user("Hi", metadata={"model": "m"}, created_at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC))
    made = to_openai(message)
    assert made == {"role": "user", "content": "Hi"}
    assert from_openai(made, id=message.id, created_at=message.created_at, metadata={"model": "m"}) == message


def test_written_dicts_share_nothing_with_the_message() -> None:
    message = from_openai(
        {
            "role": "assistant",
            "content": [{"type": "new", "deep": [1]}],
            "annotations": [{"a": 1}],
            "tool_calls": [CALL],
        }
    )
    before = message.to_dict()
    made = to_openai(message)
    made["content"][0]["deep"].append(2)
    made["annotations"][0]["a"] = 2
    made["tool_calls"][0]["function"]["name"] = "other"
    assert message.to_dict() == before


@pytest.mark.parametrize(
    ("given", "comes_back"),
    [
        (Media("image/png", url="https://x.org/a"), Media("image/*", url="https://x.org/a")),
        (Media("image/png", url=PNG), Media("image/png", PNG_BYTES)),
        (Media("audio/x-wav", b"RIFF"), Media("audio/wav", b"RIFF")),
        (Media("audio/mp3", b"ID3"), Media("audio/mpeg", b"ID3")),
    ],
)
def test_the_spelling_of_some_media_changes_as_documented(given: Media, comes_back: Media) -> None:
    assert from_openai(to_openai(Message.user([given]))).parts == (comes_back,)
