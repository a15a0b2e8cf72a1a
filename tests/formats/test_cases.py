"""Formats case by case, but for OpenAI's chat: what a Message becomes, what is refused, what is left when asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chatkeep import InvalidMessageError, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from chatkeep.errors import ConfigurationError, UnstorableValueError
from chatkeep.formats import find_format, format_names
from chatkeep.formats.anthropic import from_anthropic, messages_from_anthropic, messages_to_anthropic, to_anthropic
from chatkeep.formats.langchain4j import from_langchain4j, messages_to_langchain4j, to_langchain4j
from chatkeep.formats.openai import messages_from_openai, messages_to_openai
from chatkeep.formats.responses import messages_from_responses, messages_to_responses
from chatkeep.formats.spring_ai import (
    messages_from_spring_ai,
    messages_from_spring_ai_redis,
    messages_to_spring_ai,
    messages_to_spring_ai_redis,
)

CALL = ToolCall("c1", "add", '{"a":1}')
TURN = [
    Message.system("Be brief."),
    Message.user("1+1?"),
    Message.assistant("Wait.", tool_calls=[CALL, ToolCall("c2", "add", "{}")]),
    Message.tool("2", call_id="c1", name="add"),
    Message.tool("0", call_id="c2", name="add"),
    Message.assistant("2"),
]


def test_a_turn_becomes_anthropics_with_all_results_together() -> None:
    uses = [
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "add", "input": {}},
    ]
    results = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": text} for n, text in ((1, "2"), (2, "0"))]
    assert messages_to_anthropic(TURN) == {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "1+1?"},
            {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, *uses]},
            {"role": "user", "content": results},
            {"role": "assistant", "content": "2"},
        ],
    }


def test_a_turn_becomes_items_of_responses() -> None:
    assert messages_to_responses(TURN) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "Wait."},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a":1}'},
        {"type": "function_call", "call_id": "c2", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "2", "name": "add"},
        {"type": "function_call_output", "call_id": "c2", "output": "0", "name": "add"},
        {"role": "assistant", "content": "2"},
    ]


def test_a_turn_becomes_langchain4js_with_the_fields_that_its_reader_wants() -> None:
    requests = [{"id": "c1", "name": "add", "arguments": '{"a":1}'}, {"id": "c2", "name": "add", "arguments": "{}"}]

    def result(call_id: str, text: str) -> dict[str, Any]:
        contents = [{"text": text, "type": "TEXT"}]
        head = {"type": "TOOL_EXECUTION_RESULT", "id": call_id, "toolName": "add"}
        return {**head, "contents": contents, "isError": False, "attributes": {}}

    assert messages_to_langchain4j(TURN) == [
        {"type": "SYSTEM", "text": "Be brief."},
        {"type": "USER", "contents": [{"text": "1+1?", "type": "TEXT"}]},
        {"type": "AI", "text": "Wait.", "toolExecutionRequests": requests, "attributes": {}},
        result("c1", "2"),
        result("c2", "0"),
        {"type": "AI", "text": "2", "toolExecutionRequests": [], "attributes": {}},
    ]


def test_a_turn_becomes_spring_ais_documents_and_its_rows_refuse_calls() -> None:
    made = messages_to_spring_ai_redis(TURN, conversation_id="c")
    assert made[2]["toolCalls"][0] == {"id": "c1", "type": "function", "name": "add", "arguments": '{"a":1}'}
    assert made[3]["content"] == ""
    assert made[3]["toolResponses"] == [{"id": "c1", "name": "add", "responseData": "2"}]
    assert [item["timestamp"] for item in made] == sorted({item["timestamp"] for item in made})
    with pytest.raises(InvalidMessageError, match=r"^messages\[2\]\.parts\[1\]: ToolCall: a row is text and nothing"):
        messages_to_spring_ai(TURN)
    rows = messages_to_spring_ai(TURN, conversation_id="c", drop_unsupported=True)
    assert [(row["type"], row["content"], row["sequence_id"]) for row in rows] == [
        ("SYSTEM", "Be brief.", 0),
        ("USER", "1+1?", 1),
        ("ASSISTANT", "Wait.", 2),
        ("ASSISTANT", "2", 3),
    ]


def test_a_conversation_goes_from_one_provider_to_the_other_and_back() -> None:
    request = messages_to_anthropic(TURN)
    read = messages_from_anthropic(request["messages"], system=request["system"])
    assert [message.role for message in read] == ["system", "user", "assistant", "tool", "assistant"]
    assert messages_to_openai(read) == messages_to_openai(
        [
            *TURN[:3],
            Message("tool", (ToolResult("c1", "2"), ToolResult("c2", "0"))),
            TURN[5],
        ]
    )


def test_rows_that_were_read_and_new_messages_are_numbered_on() -> None:
    row = {"content": "x", "type": "USER", "timestamp": "2026-01-01 10:00:00.000000"}
    read = messages_from_spring_ai([{**row, "sequence_id": 6}, {**row, "sequence_id": 7}])
    assert [message.extra for message in read] == [{"spring-ai": {"sequence_id": 6}}, {}]
    assert read[0].created_at.isoformat() == "2026-01-01T10:00:00+00:00"
    assert [row["sequence_id"] for row in messages_to_spring_ai([*read, Message.assistant("y")])] == [6, 7, 8]


def test_what_a_model_gave_in_one_go_is_one_message() -> None:
    items = [
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
    ]
    call, result = messages_from_responses(items)
    assert [type(part) for part in call.parts] == [Thinking, ToolCall]
    assert call.parts[0].signature == "e"  # type: ignore[union-attr]
    assert result.tool_results == [ToolResult("c", "1")]
    assert messages_from_responses("Hi")[0].text == "Hi"


def test_two_messages_of_the_model_behind_one_another_stay_two_items() -> None:
    items = [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]
    read = messages_from_responses(items)
    assert [message.text for message in read] == ["ab"]
    assert messages_to_responses(read) == items


@pytest.mark.parametrize("audio", [{"binaryData": "AAEC"}, {"binaryData": "AAEC", "mimeType": "text/x"}])
def test_what_is_unusual_in_two_ways_is_kept_whole(audio: dict[str, str]) -> None:
    given = {"type": "USER", "contents": [{"type": "AUDIO", "audio": audio}]}
    message = from_langchain4j(given)
    assert message.parts == (Opaque("langchain4j.content", given["contents"][0]),)
    assert to_langchain4j(message) == given


# The path of a refusal, and what is left where losses are accepted.
anthropic = lambda messages, **how: messages_to_anthropic(messages, **how)["messages"]  # noqa: E731
LOSSES: dict[str, tuple[Callable[..., Any], Message, str, list[Any]]] = {
    "thinking that nobody signed": (
        anthropic,
        Message.assistant([Thinking("hm"), Text("4")]),
        r"parts\[0\]\.signature: Anthropic takes back only",
        [{"role": "assistant", "content": "4"}],
    ),
    "thinking of another provider": (
        anthropic,
        Message.assistant([Thinking("hm", "sig", {"openai-responses.item": {"id": "r"}}), Text("4")]),
        r"parts\[0\]\.extra\.openai-responses\.item: ",
        [{"role": "assistant", "content": "4"}],
    ),
    "arguments that are no JSON": (
        anthropic,
        Message.assistant(tool_calls=[ToolCall("c", "f", '{"a')]),
        r"parts\[0\]\.arguments: arguments are no JSON object",
        [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"INVALID_JSON": '{"a'}}],
            }
        ],
    ),
    "arguments that say a key twice": (
        anthropic,
        Message.assistant("x", tool_calls=[ToolCall("c", "f", '{"a":1,"a":2}')]),
        r"parts\[1\]\.arguments: .*a key stands twice",
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "x"},
                    {"type": "tool_use", "id": "c", "name": "f", "input": {"INVALID_JSON": '{"a":1,"a":2}'}},
                ],
            }
        ],
    ),
    "the name of a result whose call isn't there": (
        anthropic,
        Message.tool("2", call_id="c", name="add"),
        r"parts\[0\]\.name: ",
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "2"}]}],
    ),
    "sound": (anthropic, Message.user([Media("audio/wav", b"x")]), r"parts\[0\]: .*data of audio/wav", []),
    "an unknown role": (anthropic, Message("critic", (Text("x"),)), r"role: Anthropic knows no role 'critic'", []),
    "a note against the field": (
        anthropic,
        Message.user([Text("a", {"anthropic": {"text": "b"}})]),
        r"parts\[0\]\.extra\.anthropic\.text: a note can't stand in",
        [{"role": "user", "content": "a"}],
    ),
    "a name": (
        anthropic,
        Message.user("x", name="Anna"),
        r"name: Anthropic's messages have no name",
        [{"role": "user", "content": "x"}],
    ),
    "reasoning that OpenAI didn't make": (
        messages_to_responses,
        Message.assistant([Thinking("hm", "sig"), Text("4")]),
        r"parts\[0\]: reasoning goes back only in an item that OpenAI made",
        [{"role": "assistant", "content": "4"}],
    ),
    "a failed call": (
        messages_to_responses,
        Message.tool("boom", call_id="c", is_error=True),
        r"parts\[0\]\.is_error: ",
        [{"type": "function_call_output", "call_id": "c", "output": "boom"}],
    ),
    "an assistant who says nothing": (
        messages_to_responses,
        Message.assistant(),
        r"parts: a message of role 'assistant' without parts",
        [],
    ),
    "opaque of another": (messages_to_responses, Message.user([Opaque("x", 1)]), r"parts\[0\]: Opaque 'x'", []),
    "two texts of an AI": (
        messages_to_langchain4j,
        Message.assistant([Text("a"), Text("b")]),
        r"parts\[1\]: an AiMessage has one text",
        [{"type": "AI", "text": "ab", "toolExecutionRequests": [], "attributes": {}}],
    ),
    "metadata of a system message": (
        messages_to_langchain4j,
        Message.system("x", metadata={"a": 1}),
        r"metadata: a SystemMessage has no attributes",
        [{"type": "SYSTEM", "text": "x"}],
    ),
    "a signature": (
        messages_to_langchain4j,
        Message.assistant([Thinking("t", "sig")]),
        r"parts\[0\]\.signature: ",
        [{"type": "AI", "thinking": "t", "toolExecutionRequests": [], "attributes": {}}],
    ),
    "a result in parts": (
        lambda messages, **how: [
            {key: value for key, value in item.items() if key != "timestamp"}
            for item in messages_to_spring_ai_redis(messages, **how)
        ],
        Message.tool([Text("2"), Media("image/png", b"x")], call_id="c"),
        r"parts\[0\]\.content: a tool response is text",
        [{"type": "TOOL", "content": "", "metadata": {}, "toolResponses": [{"id": "c", "responseData": "2"}]}],
    ),
}


@pytest.mark.parametrize("case", LOSSES)
def test_what_a_format_cannot_say_is_refused_or_left_out_when_asked(case: str) -> None:
    write, message, pattern, left = LOSSES[case]
    with pytest.raises(InvalidMessageError, match=r"^messages\[0\]\." + pattern) as caught:
        write([message])
    assert str(caught.value).endswith("drop_unsupported=True lets it go")
    assert write([message], drop_unsupported=True) == left


def one(kind: str, **fields: Any) -> list[Any]:
    return [{"role": "user", "content": [{"type": kind, **fields}]}]


NEST: Any = "x"
for _ in range(250):
    NEST = [NEST]
BAD: dict[str, tuple[str, Any, str]] = {
    "no object": ("anthropic", ["hello"], r"^messages\[0\]: expected a dict, got str.*model_dump"),
    "role": ("anthropic", [{"role": "tool", "content": "x"}], r"^messages\[0\]\.role: expected one of user, assi"),
    "no content": ("anthropic", [{"role": "user"}], r"^messages\[0\]\.content: missing"),
    "null content": ("anthropic", [{"role": "user", "content": None}], r"\.content: expected str or list, got null"),
    "no type": ("anthropic", [{"role": "user", "content": [{"text": "x"}]}], r"content\[0\]\.type: missing"),
    "input": ("anthropic", one("tool_use", id="c", name="f", input="{}"), r"\.input: expected dict, got str"),
    "is_error": ("anthropic", one("tool_result", tool_use_id="c", is_error="no"), r"\.is_error: expected bool or null"),
    "source": ("anthropic", one("image", source="x"), r"content\[0\]\.source: expected dict, got str"),
    "source type": ("anthropic", one("image", source={}), r"content\[0\]\.source\.type: missing"),
    "system": ("anthropic", {"system": 5, "messages": []}, r"^system: expected str or list, got int"),
    "deep": ("anthropic", [{"role": "user", "content": "x", "y": NEST}], r"more than 200 levels"),
    "nan": ("anthropic", [{"role": "user", "content": "x", "y": float("nan")}], r"messages\[0\]\.y: nan is not JSON"),
    "no item type": ("openai-responses", [{"content": "x"}], r"^items\[0\]\.type: missing"),
    "item role": ("openai-responses", [{"role": "robot", "content": "x"}], r"^items\[0\]\.role: expected one of"),
    "output": ("openai-responses", [{"type": "function_call_output", "call_id": "c"}], r"items\[0\]\.output: missing"),
    "summary": ("openai-responses", [{"type": "reasoning", "summary": "x"}], r"\.summary: expected list, got str"),
    "arguments": (
        "openai-responses",
        [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}],
        r"^items\[0\]\.arguments: expected str, got dict",
    ),
    "type": ("langchain4j", [{"type": "ROBOT"}], r"^messages\[0\]\.type: expected one of SYSTEM, USER, AI"),
    "contents": ("langchain4j", [{"type": "USER", "text": "x"}], r"^messages\[0\]\.contents: missing"),
    "both": ("langchain4j", [{"type": "TOOL_EXECUTION_RESULT", "text": "x", "contents": []}], r"text or contents, not"),
    "row type": ("spring-ai", [{"type": "user", "content": "x"}], r"^rows\[0\]\.type: expected one of"),
    "row content": ("spring-ai", [{"type": "USER"}], r"^rows\[0\]\.content: missing"),
    "two conversations": (
        "spring-ai",
        [{"type": "USER", "content": "x", "conversation_id": name} for name in "ab"],
        r"^rows\[1\]\.conversation_id: another one",
    ),
    "no list": ("openai", {"messages": "x"}, r"^messages: expected a list, got str"),
    "no messages": ("openai", {"model": "x"}, r"^messages: missing"),
    "no document": ("openai", 5, r"^expected an object with 'messages', or a list, got int"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_refused_with_the_path(case: str) -> None:
    name, given, pattern = BAD[case]
    with pytest.raises(InvalidMessageError, match=pattern):
        find_format(name).read(given)


def test_single_messages_go_both_ways_with_what_the_format_has_no_place_for() -> None:
    message = Message.user("Hi", metadata={"a": 1})
    own = {"id": message.id, "created_at": message.created_at}
    assert from_anthropic(to_anthropic(message), metadata={"a": 1}, **own) == message
    assert from_langchain4j(to_langchain4j(message), **own) == message
    assert to_langchain4j(message)["attributes"] == {"a": 1}
    with pytest.raises(InvalidMessageError, match="makes 2 LangChain4j messages, not one"):
        to_langchain4j(Message("tool", (ToolResult("a", "1"), ToolResult("b", "2"))))
    with pytest.raises(InvalidMessageError, match="nothing of the message"):
        to_anthropic(Message.user([Opaque("x", 1)]), drop_unsupported=True)


def test_a_value_that_is_no_json_is_refused_with_the_path() -> None:
    with pytest.raises(UnstorableValueError, match=r"^message\.usage: tuple"):
        from_anthropic({"role": "user", "content": "x", "usage": (1, 2)})


def test_an_unknown_format_is_refused_with_the_list_of_the_known() -> None:
    with pytest.raises(ConfigurationError, match="unknown format 'os'; known are openai, "):
        find_format("os")
    assert all(find_format(name).name == name for name in format_names())


def test_written_objects_share_nothing_with_the_message() -> None:
    given = {"role": "assistant", "content": [{"type": "new", "deep": [1]}], "usage": {"a": 1}}
    message = from_anthropic(given)
    before = message.to_dict()
    made = to_anthropic(message)
    made["content"][0]["deep"].append(2)
    made["usage"]["a"] = 2
    lists = messages_to_langchain4j([Message.user("x", metadata={"a": [1]})])
    lists[0]["attributes"]["a"].append(2)
    assert message.to_dict() == before
    documents = messages_from_spring_ai_redis([{"type": "USER", "metadata": {"a": [1]}}])
    messages_to_spring_ai_redis(documents)[0]["metadata"]["a"].append(2)
    assert documents[0].metadata == {"a": [1]}
    assert messages_from_openai([{"role": "user", "content": "x"}])[0].text == "x"
