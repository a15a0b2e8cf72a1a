"""Hypothesis strategies for everything that can be stored: messages of every kind, JSON values, ids."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from hypothesis import strategies as st

from chatkeep import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from chatkeep.identifiers import new_message_id
from chatkeep.times import EARLIEST

FIELDS = {"type", "text", "signature", "mime_type", "data", "url", "name", "id", "arguments", "call_id", "content"}
FIELDS |= {"is_error", "format", "role", "parts", "created_at", "metadata"}


def storable(text: str) -> bool:
    """Not a high surrogate directly before a low one: that pair would come back as one character, so it is refused."""
    return re.search("[\ud800-\udbff][\udc00-\udfff]", text) is None


any_text = st.text(st.characters(exclude_categories=()), max_size=40).filter(storable)
"""Any str, lone surrogates and NUL included."""

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)

objects = st.dictionaries(any_text, json_values, max_size=3)
extras = st.dictionaries(any_text.filter(lambda key: key not in FIELDS), json_values, max_size=2)

ids = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=255).filter(
    lambda text: text == text.strip()
)
"""Conversation, owner and message ids."""

roles = st.sampled_from(["system", "user", "assistant", "tool", "developer", "critic", "Übersetzer"])

moments = st.datetimes(
    min_value=EARLIEST.replace(tzinfo=None) + dt.timedelta(days=1),
    max_value=dt.datetime(9999, 12, 30),
    timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=45)), dt.timezone.min]),
)

texts = st.builds(Text, any_text, extras)
opaque = st.builds(Opaque, any_text, json_values)
media = st.builds(Media, any_text, st.binary(max_size=60), st.none(), st.none() | any_text, extras) | st.builds(
    Media, any_text, st.none(), any_text, st.none() | any_text, extras
)
simple_parts = texts | media | opaque
parts: st.SearchStrategy[Part] = (
    simple_parts
    | st.builds(Thinking, any_text, st.none() | any_text, extras)
    | st.builds(ToolCall, any_text, any_text, any_text, extras)
    | st.builds(
        ToolResult,
        any_text,
        any_text | st.lists(simple_parts, max_size=3).map(tuple),
        st.none() | any_text,
        st.booleans(),
        extras,
    )
)

messages = st.builds(
    Message,
    roles,
    st.lists(parts, max_size=4).map(tuple),
    st.builds(new_message_id),
    moments,
    st.none() | any_text,
    objects,
    extras,
)
conversations = st.lists(messages, min_size=1, max_size=5)
