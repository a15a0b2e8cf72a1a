"""OpenAI's format, generated: both ways round without loss, or refused; never a crash, never a silent drop."""

from __future__ import annotations

import base64
import json
import re
import string
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chatkeep import InvalidMessageError, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from chatkeep.formats.openai import from_openai, messages_from_openai, messages_to_openai, to_openai

Strategy = st.SearchStrategy[Any]

MANY = settings(max_examples=8 * settings.default.max_examples)
"""These cost little, and the mistakes here hide in rare combinations of fields."""

PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""JSON can't tell such a pair from the one character that it stands for, so messages refuse it."""

# All of Unicode, with NUL and lone surrogates: a chat may hold them, and so may an argument cut off by a model.
texts = st.text(st.characters(exclude_categories=()), max_size=8).filter(lambda text: PAIR.search(text) is None)
words = st.text(string.ascii_lowercase, min_size=1, max_size=6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=5
)
# Unknown fields with names that some field of a Message or a part has too: the likeliest confusion.
unknown_names = st.sampled_from(
    ["id", "text", "url", "data", "mime_type", "name", "extra", "openai", "metadata", "format", "arguments", "call_id"]
) | st.sampled_from(
    ["created_at", "is_error", "signature", "cache_control", "index", "tool_call_id", "message.refusal"]
)
unknown = st.dictionaries(unknown_names, values, max_size=2)
bytes_as_base64 = st.binary(max_size=6).map(lambda data: base64.b64encode(data).decode())
mime_types = st.sampled_from(
    ["image/png", "application/pdf", "audio/mpeg", "audio/mp3", "text/plain;charset=utf-8", ""]
)
data_urls = st.builds("data:{};base64,{}".format, mime_types, bytes_as_base64 | texts)
urls = (
    st.sampled_from(["https://x.org/a.png", "http://x.org/a.webp#f", "https://x.org", "file.png", ""])
    | data_urls
    | texts
)


def obj(required: dict[str, Strategy], optional: dict[str, Strategy] | None = None) -> Strategy:
    """An object with these fields, some of those, and unknown ones that clash with neither."""
    known = st.fixed_dictionaries(required, optional=optional or {})
    names = required.keys() | (optional or {}).keys()
    return st.builds(lambda rest, own: {k: v for k, v in rest.items() if k not in names} | own, unknown, known)


def kind(name: str) -> Strategy:
    return st.just(name)


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
optional_texts = texts | st.none()
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

foreign = st.dictionaries(st.sampled_from(["anthropic", "note"]), values, max_size=1)
# Notes written by hand, also ones that contradict the part or that nobody can read.
noted_names = st.sampled_from(["type", "content", "name", "function", "image_url", "file", "function_call", "text"])
noted_values = values | st.sampled_from(
    ["refusal", "message.refusal", "message.function_call", "custom", "missing", "list", {"filename": "x"}]
)
noted = st.builds(lambda rest: {"openai": rest}, st.dictionaries(noted_names, noted_values, max_size=2))
image_links = st.sampled_from(["https://x.org/a.png", "https://x.org/b/c.PNG?d=1"])
data_types = st.sampled_from(["image/png", "audio/wav", "application/pdf", "a,b"])
opaque_types = st.sampled_from(["openai.content", "openai.tool_call", "other"])


def messages_with(extras: Strategy) -> Strategy:
    """Any Messages: parts of every kind in every order and under every role."""
    leaf_parts = st.one_of(
        st.builds(Text, texts, extras),
        st.builds(Media, data_types, st.binary(max_size=3), name=st.none() | texts, extra=extras),
        st.builds(Media, st.sampled_from(["image/png", "audio/wav"]), url=image_links, extra=extras),
        st.builds(Opaque, opaque_types, values | content_parts | calls),
        st.builds(Thinking, texts, st.none() | texts, extras),
        st.builds(ToolCall, texts, texts, texts, extras),
    )
    contents = texts | st.lists(leaf_parts, max_size=2).map(tuple)
    results = st.builds(ToolResult, texts, contents, optional_texts, st.booleans(), extras)
    return st.builds(
        Message,
        st.sampled_from(["user", "assistant", "tool", "function", "critic"]),
        st.lists(leaf_parts | results, max_size=4).map(tuple),
        name=optional_texts,
        metadata=st.dictionaries(words, values, max_size=1),
        extra=extras,
    )


@MANY
@given(messages_with(st.just({}) | foreign))
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
@given(messages_with(st.just({}) | foreign))
def test_no_message_is_refused_where_losses_are_accepted(message: Message) -> None:
    made = messages_to_openai([message], drop_unsupported=True)
    assert same(messages_to_openai(messages_from_openai(made)), made)


@MANY
@given(messages_with(st.just({}) | noted), st.booleans())
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


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: unlike ==, this tells 1 from 1.0 and from true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
