"""Every format but OpenAI's chat, generated: both ways round without loss, or refused; never a crash or silent drop."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatkeep import InvalidMessageError, Media, Message, Text, ToolCall, ToolResult
from chatkeep.formats import anthropic, langchain4j, responses, spring_ai
from chatkeep.formats.shared.parts import parsed_arguments

from .strategies import (
    MANY,
    Strategy,
    bytes_as_base64,
    data_urls,
    foreign_to,
    kind,
    messages_with,
    noted_for,
    obj,
    objects,
    optional_texts,
    same,
    texts,
    urls,
    values,
)

Json = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Case:
    """A format under test: its functions over lists, and its objects generated."""

    read: Callable[[Any], list[Message]]
    write: Callable[..., Any]
    items: Strategy
    parts: Strategy
    notes: tuple[str, ...]
    empty: Any


# --- Anthropic --------------------------------------------------------------------------------------------------------

sources = st.one_of(
    obj({"type": kind("base64"), "media_type": texts | kind("image/png"), "data": bytes_as_base64 | texts}),
    obj({"type": kind("base64"), "media_type": kind("application/pdf"), "data": bytes_as_base64}),
    obj({"type": kind("url"), "url": urls}),
    obj({"type": kind("text"), "media_type": kind("text/plain") | texts, "data": texts}),
    obj({"type": st.sampled_from(["file", "content", ""])}, {"file_id": values, "content": values}),
)
leaf_blocks = st.one_of(
    obj({"type": kind("text"), "text": texts}, {"cache_control": values, "citations": values}),
    obj({"type": st.sampled_from(["image", "document"]), "source": sources}, {"title": optional_texts}),
    obj({"type": st.sampled_from(["search_result", "redacted_thinking", "server_tool_use", ""])}, {"data": values}),
)
blocks = st.one_of(
    leaf_blocks,
    obj({"type": kind("thinking"), "thinking": texts}, {"signature": optional_texts}),
    obj({"type": kind("tool_use"), "id": texts, "name": texts, "input": objects}),
    obj(
        {"type": kind("tool_result"), "tool_use_id": texts},
        {"content": texts | st.lists(leaf_blocks, max_size=2), "is_error": st.booleans() | st.none()},
    ),
)
anthropic_messages = obj(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": texts | st.lists(blocks, max_size=3),
    },
    {"usage": values, "id": values},
)


def read_anthropic(request: Json) -> list[Message]:
    return anthropic.messages_from_anthropic(request["messages"], system=request.get("system"))


anthropic_requests = st.fixed_dictionaries(
    {"messages": st.lists(anthropic_messages, max_size=4)},
    optional={"system": texts | st.lists(obj({"type": kind("text"), "text": texts}), max_size=2)},
)

# --- OpenAI Responses -------------------------------------------------------------------------------------------------

response_contents = st.one_of(
    obj({"type": st.sampled_from(["input_text", "output_text"]), "text": texts}, {"annotations": values}),
    obj({"type": kind("refusal"), "refusal": texts}),
    obj(
        {"type": kind("input_image")},
        {"image_url": urls | st.none(), "detail": optional_texts, "file_id": optional_texts},
    ),
    obj(
        {"type": kind("input_file")},
        {"file_data": data_urls | texts | st.none(), "file_url": urls, "filename": optional_texts, "file_id": texts},
    ),
    obj({"type": st.sampled_from(["input_audio", ""])}, {"input_audio": values}),
)


def thoughts(name: str) -> Strategy:
    return st.lists(obj({"type": st.sampled_from([name, name, name, "new"]), "text": texts}), max_size=2)


response_items = st.one_of(
    obj(
        {
            "role": st.sampled_from(["user", "assistant", "system", "developer"]),
            "content": texts | st.lists(response_contents, max_size=3),
        },
        {"type": kind("message"), "id": values, "status": values, "phase": values},
    ),
    obj({"type": kind("function_call"), "call_id": texts, "name": texts, "arguments": texts}, {"id": values}),
    obj({"type": kind("custom_tool_call"), "call_id": texts, "name": texts, "input": texts}),
    obj(
        {
            "type": st.sampled_from(["function_call_output", "custom_tool_call_output"]),
            "output": texts | st.lists(response_contents, max_size=2),
        },
        {"call_id": optional_texts, "name": optional_texts, "status": values},
    ),
    obj(
        {"type": kind("reasoning"), "summary": thoughts("summary_text")},
        {"content": thoughts("reasoning_text") | st.none(), "encrypted_content": optional_texts, "id": values},
    ),
    obj({"type": st.sampled_from(["web_search_call", "shell_call_output", "mcp_approval_response", "item_reference"])}),
)

# --- LangChain4j ------------------------------------------------------------------------------------------------------

media_types = st.sampled_from(["image/png", "audio/wav", "video/mp4", "application/pdf", ""]) | texts | st.none()
media_fields = {"url": urls | st.none(), "base64Data": bytes_as_base64 | texts | st.none(), "mimeType": media_types}
lc_contents = st.one_of(
    obj({"type": kind("TEXT"), "text": texts}),
    obj(
        {"type": kind("IMAGE"), "image": obj({}, media_fields)},
        {"detailLevel": st.sampled_from(["LOW", "HIGH", "missing"]) | st.none()},
    ),
    obj({"type": kind("AUDIO"), "audio": obj({}, {**media_fields, "binaryData": bytes_as_base64})}),
    obj({"type": kind("VIDEO"), "video": obj({}, media_fields)}),
    obj({"type": kind("PDF"), "pdfFile": obj({}, media_fields)}),
    obj({"type": st.sampled_from(["SMELL", ""])}),
)
contents_list = st.lists(lc_contents, max_size=2)
maps = objects | st.none()
calls = obj({"name": texts}, {"id": optional_texts, "arguments": optional_texts})
lc_messages = st.one_of(
    obj({"type": kind("SYSTEM"), "text": texts}),
    obj({"type": kind("USER"), "contents": contents_list}, {"name": optional_texts, "attributes": maps}),
    obj(
        {"type": kind("AI")},
        {
            "text": optional_texts,
            "thinking": optional_texts,
            "toolExecutionRequests": st.lists(calls, max_size=2) | st.none(),
            "attributes": maps,
        },
    ),
    st.builds(
        lambda head, body: {**head, **body},
        obj(
            {"type": kind("TOOL_EXECUTION_RESULT"), "text": texts, "contents": texts},
            {
                "id": optional_texts,
                "toolName": optional_texts,
                "isError": st.booleans() | st.none(),
                "attributes": maps,
            },
        ).map(lambda made: {key: value for key, value in made.items() if key not in ("text", "contents")}),
        st.fixed_dictionaries({"contents": contents_list}) | st.fixed_dictionaries({"text": texts}),
    ),
    obj({"type": kind("CUSTOM")}, {"attributes": maps}),
)

# --- Spring AI --------------------------------------------------------------------------------------------------------

types = st.sampled_from(["USER", "ASSISTANT", "SYSTEM", "TOOL"])
timestamps = (
    st.sampled_from(["2026-01-02 03:04:05.123456", "2026-01-02T03:04:05Z", "0001-01-01", "yesterday", 0, 10**30])
    | st.integers()
    | st.none()
)
rows = obj(
    {"type": types, "content": optional_texts},
    {"timestamp": timestamps, "sequence_id": st.integers(0, 3) | st.integers() | st.none()},
)
redis_calls = obj({"id": texts, "name": texts, "arguments": texts}, {"type": texts | kind("function")})
documents = obj(
    {"type": types},
    {
        "content": optional_texts,
        "timestamp": st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.none(),
        "metadata": maps,
        "toolCalls": st.none()
        | st.lists(
            obj({"id": texts, "name": texts, "arguments": texts}, {"type": texts | kind("function")}), max_size=2
        ),
        "toolResponses": st.none()
        | st.lists(obj({"id": texts, "responseData": texts}, {"name": optional_texts}), max_size=2),
        "media": st.none()
        | st.lists(
            obj(
                {"mimeType": texts | kind("image/png")},
                {
                    "id": optional_texts,
                    "name": optional_texts,
                    "data": bytes_as_base64 | values,
                    "dataType": st.sampled_from(["base64", "uri"]) | st.none(),
                },
            ),
            max_size=2,
        ),
    },
)

CASES: dict[str, Case] = {
    "anthropic": Case(
        read_anthropic, anthropic.messages_to_anthropic, anthropic_requests, blocks, ("anthropic",), {"messages": []}
    ),
    "responses": Case(
        responses.messages_from_responses,
        responses.messages_to_responses,
        st.lists(response_items, max_size=5),
        response_items | response_contents,
        ("openai-responses", "openai-responses.item"),
        [],
    ),
    "langchain4j": Case(
        langchain4j.messages_from_langchain4j,
        langchain4j.messages_to_langchain4j,
        st.lists(lc_messages, max_size=3),
        lc_contents,
        ("langchain4j",),
        [],
    ),
    "spring-ai": Case(
        spring_ai.messages_from_spring_ai,
        spring_ai.messages_to_spring_ai,
        st.lists(rows, max_size=4),
        values,
        ("spring-ai",),
        [],
    ),
    "spring-ai-redis": Case(
        spring_ai.messages_from_spring_ai_redis,
        spring_ai.messages_to_spring_ai_redis,
        st.lists(documents, max_size=3),
        values,
        ("spring-ai-redis",),
        [],
    ),
}
every_format = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@every_format
@MANY
@given(st.data())
def test_what_is_read_is_written_equal_also_through_the_stored_form(case: Case, data: st.DataObject) -> None:
    given_items = data.draw(case.items)
    before = json.dumps(given_items)
    read = case.read(given_items)
    assert json.dumps(given_items) == before, "the caller's objects were changed"
    if case.empty == [] and any("conversation_id" in item for item in given_items):
        return
    assert same(case.write(read), given_items)
    assert same(case.write(read, drop_unsupported=True), given_items)
    stored = json.dumps([message.to_dict() for message in read])
    assert same(case.write([Message.from_dict(item) for item in json.loads(stored)]), given_items)


@every_format
@MANY
@given(st.data())
def test_a_message_comes_back_with_the_same_parts_or_is_refused(case: Case, data: st.DataObject) -> None:
    message = data.draw(messages_with(foreign_to(*case.notes), case.parts))
    try:
        made = case.write([message])
    except InvalidMessageError:
        return
    back = case.read(made)
    assert parts_of(back) == parts_of([message])


@every_format
@MANY
@given(st.data())
def test_no_message_is_refused_where_losses_are_accepted(case: Case, data: st.DataObject) -> None:
    messages = data.draw(st.lists(messages_with(foreign_to(*case.notes), case.parts), max_size=2))
    made = case.write(messages, drop_unsupported=True)
    assert same(case.write(case.read(made)), made)


@every_format
@MANY
@given(st.data())
def test_notes_written_by_hand_make_what_can_be_read_or_are_refused(case: Case, data: st.DataObject) -> None:
    message = data.draw(messages_with(noted_for(*case.notes), case.parts))
    try:
        made = case.write([message], drop_unsupported=data.draw(st.booleans()))
    except InvalidMessageError:
        return
    assert same(case.write(case.read(made)), made)


names = st.sampled_from(["role", "type", "content", "contents", "text", "call_id", "summary", "attributes", "input"])
words = st.sampled_from(
    ["user", "AI", "USER", "TOOL", "tool_use", "tool_result", "reasoning", "function_call", "image", "IMAGE", "message"]
)
anything = st.recursive(
    values | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner | words, max_size=4),
    max_leaves=8,
)


@every_format
@MANY
@given(anything)
def test_anything_else_is_refused_by_a_typed_error_and_nothing_else(case: Case, value: Any) -> None:
    given_items = {"messages": [value]} if case.empty else [value]
    try:
        read = case.read(given_items)
    except InvalidMessageError:
        return
    assert same(case.write(read), given_items)


def parts_of(messages: Sequence[Message]) -> list[Any]:
    """The parts, with what formats are documented to spell otherwise spelled alike."""
    return [plain(part) for message in messages for part in message.parts]


def plain(part: Any) -> Any:
    if isinstance(part, ToolCall):
        arguments = parsed_arguments(part.arguments)
        return part.id, part.name, part.arguments if isinstance(arguments, str) else json.dumps(arguments), part.extra
    if isinstance(part, Media):
        return part.url or (part.mime_type, part.data), part.name, part.extra
    if isinstance(part, ToolResult):
        # One plain text may be a string.
        content = (Text(part.content),) if isinstance(part.content, str) else part.content
        return part.call_id, [plain(item) for item in content], part.name, part.is_error, part.extra
    return part
