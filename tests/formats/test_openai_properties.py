"""OpenAI's format, generated: both ways round without loss, or refused; never a crash, never a silent drop."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chatkeep import InvalidMessageError, Message
from chatkeep.formats.openai import from_openai, messages_from_openai, messages_to_openai, to_openai

from .strategies import (
    MANY,
    bytes_as_base64,
    data_urls,
    foreign_to,
    kind,
    messages_with,
    noted_for,
    obj,
    optional_texts,
    same,
    texts,
    urls,
    values,
)

content_parts = st.one_of(
    obj({"type": kind("text"), "text": texts}),
    obj({"type": kind("refusal"), "refusal": texts}),
    obj(
        {"type": kind("image_url"), "image_url": obj({"url": urls}, {"detail": st.sampled_from(["low", "auto", None])})}
    ),
    obj(
        {
            "type": kind("input_audio"),
            "input_audio": obj(
                {"data": bytes_as_base64 | texts, "format": st.sampled_from(["wav", "mp3", "mpeg", "flac"]) | texts}
            ),
        }
    ),
    obj(
        {
            "type": kind("file"),
            "file": obj(
                {}, {"file_data": data_urls | texts, "filename": texts | st.none(), "file_id": texts | st.none()}
            ),
        }
    ),
    obj({"type": st.sampled_from(["video_url", "thinking", "message.refusal", "missing", ""]), "video_url": values}),
)
contents = texts | st.none() | st.lists(content_parts, max_size=3)
functions = obj({"name": texts, "arguments": texts})
calls = st.one_of(
    obj({"id": texts, "type": kind("function"), "function": functions}),
    obj({"id": texts, "function": functions}, {}).filter(lambda call: "type" not in call),
    obj({"id": texts, "type": kind("custom"), "custom": obj({"name": texts, "input": texts})}),
    obj({"type": st.sampled_from(["mcp", "missing", "message.function_call", ""])}),
)
plain_messages = obj(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "critic"])},
    {
        "content": contents,
        "name": optional_texts,
        "refusal": optional_texts,
        "reasoning_content": optional_texts,
        "tool_calls": st.lists(calls, max_size=2) | st.none(),
        "function_call": functions | st.none(),
        "audio": st.none() | st.dictionaries(texts, values, max_size=1),
        "annotations": st.none() | st.lists(values, max_size=1),
    },
)
tool_messages = obj(
    {"role": kind("tool"), "tool_call_id": texts}, {"content": contents, "name": optional_texts, "refusal": values}
)
function_messages = obj({"role": kind("function"), "name": texts}, {"content": contents, "tool_calls": values})
openai_messages = st.one_of(plain_messages, tool_messages, function_messages)


@MANY
@given(openai_messages)
def test_any_dict_comes_back_equal(message: dict[str, Any]) -> None:
    assert same(to_openai(from_openai(message)), message)


@MANY
@given(openai_messages)
def test_any_dict_comes_back_equal_through_the_stored_form(message: dict[str, Any]) -> None:
    stored = json.dumps(from_openai(message).to_dict())
    assert same(to_openai(Message.from_dict(json.loads(stored))), message)


@MANY
@given(st.lists(openai_messages, max_size=4))
def test_any_list_comes_back_equal_and_loses_nothing_where_losses_are_accepted(messages: list[dict[str, Any]]) -> None:
    read = messages_from_openai(messages)
    assert same(messages_to_openai(read), messages)
    assert same(messages_to_openai(read, drop_unsupported=True), messages)


# --- Messages that were not made here ---------------------------------------------------------------------------------

foreign = foreign_to("openai")
opaques = content_parts | calls


@MANY
@given(messages_with(foreign, opaques))
def test_any_message_comes_back_equal_or_is_refused(message: Message) -> None:
    try:
        made = to_openai(message)
    except InvalidMessageError:
        return
    back = from_openai(made, id=message.id, created_at=message.created_at, metadata=message.metadata)
    if message.tool_results and message.role != "function":
        # Whoever brought the result, in OpenAI's format a tool did.
        assert back.role == "tool"
        assert back.parts == message.parts
    else:
        assert back == message


@MANY
@given(messages_with(foreign, opaques))
def test_no_message_is_refused_where_losses_are_accepted(message: Message) -> None:
    made = messages_to_openai([message], drop_unsupported=True)
    assert same(messages_to_openai(messages_from_openai(made)), made)


@MANY
@given(messages_with(noted_for("openai"), opaques), st.booleans())
def test_notes_written_by_hand_make_a_dict_that_can_be_read_or_are_refused(message: Message, drop: bool) -> None:
    try:
        made = messages_to_openai([message], drop_unsupported=drop)
    except InvalidMessageError:
        return
    assert same(messages_to_openai(messages_from_openai(made)), made)


@MANY
@given(values | st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "name", "function_call"]), values))
def test_anything_else_is_refused_by_a_typed_error_and_nothing_else(value: Any) -> None:
    try:
        message = from_openai(value)
    except InvalidMessageError:
        return
    assert same(to_openai(message), value)
