"""What generated messages of all formats are made of: nasty texts, values, unknown fields, base64 that isn't."""

from __future__ import annotations

import base64
import json
import re
import string
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from chatkeep import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult

Strategy = st.SearchStrategy[Any]

MANY = settings(max_examples=4 * settings.default.max_examples)
"""These cost little, and the mistakes here hide in rare combinations of fields."""

PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""JSON can't tell such a pair from the one character that it stands for, so messages refuse it."""

# All of Unicode, with NUL and lone surrogates: a chat may hold them, and so may an argument cut off by a model.
texts = st.text(st.characters(exclude_categories=()), max_size=8).filter(lambda text: PAIR.search(text) is None)
words = st.text(string.ascii_lowercase, min_size=1, max_size=6)
optional_texts = texts | st.none()
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=5
)
objects = st.dictionaries(texts, values, max_size=2)
# Unknown fields with names that some field of a Message or a part has too: the likeliest confusion.
unknown_names = st.sampled_from(
    ["id", "text", "url", "data", "mime_type", "name", "extra", "openai", "metadata", "format", "arguments", "call_id"]
) | st.sampled_from(
    ["created_at", "is_error", "signature", "cache_control", "index", "tool_call_id", "message.refusal", "content"]
)
unknown = st.dictionaries(unknown_names, values, max_size=2)
bytes_as_base64 = st.binary(max_size=6).map(lambda data: base64.b64encode(data).decode())
mime_types = st.sampled_from(
    ["image/png", "application/pdf", "audio/mpeg", "audio/mp3", "text/plain;charset=utf-8", ""]
)
data_urls = st.builds("data:{};base64,{}".format, mime_types, bytes_as_base64 | texts)
urls = (
    st.sampled_from(["https://x.org/a.png", "http://x.org/a.webp#f", "https://x.org", "https://x.org/a.pdf", ""])
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


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: unlike ==, this tells 1 from 1.0 and from true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# --- Messages that were not made by a format --------------------------------------------------------------------------

NOTES = ["openai", "anthropic", "openai-responses", "openai-responses.item", "langchain4j", "spring-ai"]


def foreign_to(*keys: str) -> Strategy:
    """No `extra`, or that of another format."""
    others = [name for name in (*NOTES, "note") if name not in keys]
    return st.just({}) | st.dictionaries(st.sampled_from(others), values, max_size=1)


noted_names = st.sampled_from(
    ["type", "content", "contents", "name", "function", "image_url", "file", "text", "role", "signature", "input"]
) | st.sampled_from(["attributes", "isError", "toolExecutionRequests", "detailLevel", "summary", "output", "source"])
noted_values = values | st.sampled_from(
    ["refusal", "message.refusal", "custom", "missing", "list", "apart", "none", "document", "untyped", "system", False]
)


def noted_for(*keys: str) -> Strategy:
    """Notes written by hand, also ones that contradict the part or that nobody can read."""
    noted = st.dictionaries(noted_names, noted_values, max_size=2)
    return st.dictionaries(st.sampled_from(keys), noted | values, max_size=len(keys))


image_links = st.sampled_from(["https://x.org/a.png", "https://x.org/b/c.PNG?d=1"])
data_types = st.sampled_from(["image/png", "audio/wav", "application/pdf", "text/plain", "video/mp4", "a,b"])
arguments = texts | st.sampled_from(["{}", '{"a":1}', '{"a": 1.0, "b": [null]}', '{"a":1,"a":2}', "[]", "NaN", ""])


def messages_with(extras: Strategy, opaques: Strategy = values) -> Strategy:
    """Any Messages: parts of every kind in every order and under every role."""
    kinds = ["openai.content", "openai.tool_call", "anthropic.content", "openai-responses.item", "other"]
    kinds += ["openai-responses.content", "langchain4j.content", "spring-ai-redis.media"]
    leaf_parts = st.one_of(
        st.builds(Text, texts, extras),
        st.builds(Media, data_types, st.binary(max_size=3), name=st.none() | texts, extra=extras),
        st.builds(Media, st.sampled_from(["image/png", "audio/wav"]), url=image_links, extra=extras),
        st.builds(Opaque, st.sampled_from(kinds), values | opaques),
        st.builds(Thinking, texts, st.none() | texts, extras),
        st.builds(ToolCall, texts, texts, arguments, extras),
    )
    contents = texts | st.lists(leaf_parts, max_size=2).map(tuple)
    results = st.builds(ToolResult, texts, contents, optional_texts, st.booleans(), extras)
    return st.builds(
        Message,
        st.sampled_from(["user", "assistant", "system", "developer", "tool", "function", "critic", "custom"]),
        st.lists(leaf_parts | results, max_size=4).map(tuple),
        name=optional_texts,
        metadata=st.dictionaries(words, values, max_size=1),
        extra=extras,
    )
