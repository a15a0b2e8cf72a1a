"""What is written fits the types that the providers publish in their own SDKs, and what their replies dump is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from chatkeep import Media, Message, Text, ToolCall, ToolResult
from chatkeep.formats.anthropic import from_anthropic, messages_from_anthropic, messages_to_anthropic
from chatkeep.formats.openai import from_openai, messages_to_openai
from chatkeep.formats.responses import messages_from_responses, messages_to_responses

GOLDEN = Path(__file__).parents[1] / "golden/formats"

# A conversation as an application makes it, without a note of any provider.
OWN = [
    Message.system("Be brief."),
    Message("developer", (Text("Speak French."),)),
    Message.user(
        [Text("What is this?"), Media("image/png", b"\x89PNG"), Media("application/pdf", b"%PDF", name="a.pdf")]
    ),
    Message.assistant("I'll look.", tool_calls=[ToolCall("c1", "look", '{"x": 1}'), ToolCall("c2", "look", "{}")]),
    Message.tool("a cat", call_id="c1"),
    Message.tool([Text("a dog")], call_id="c2"),
    Message.assistant("A cat and a dog."),
    Message("user", (ToolResult("c9", "late"), Text("And now?"))),
]


@cache
def adapter(module: str, name: str) -> TypeAdapter[Any]:
    import importlib

    return TypeAdapter(getattr(importlib.import_module(module), name))


def check(value: Any, module: str, name: str) -> None:
    """Raises where the value doesn't fit the type, also inside of what pydantic checks only when it is gone through."""
    consume(adapter(module, name).validate_python(value))


def consume(value: Any) -> None:
    if isinstance(value, dict):
        for item in value.values():
            consume(item)
    elif isinstance(value, list) or (isinstance(value, Iterator) and not isinstance(value, str)):
        for item in value:
            consume(item)


def document(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="ascii"))["document"]


def test_own_messages_are_a_chat_completions_request() -> None:
    for item in messages_to_openai(OWN):
        check(item, "openai.types.chat", "ChatCompletionMessageParam")


def test_own_messages_are_a_responses_request() -> None:
    for item in messages_to_responses(OWN):
        check(with_detail(item), "openai.types.responses", "ResponseInputItemParam")


def with_detail(item: Any) -> Any:
    """The type asks for `detail`; the API's reference has a default for it."""
    content = item.get("content")
    if not isinstance(content, list):
        return item
    images = [{"detail": "auto", **part} if part["type"] == "input_image" else part for part in content]
    return {**item, "content": images}


def test_own_messages_are_an_anthropic_request() -> None:
    request = messages_to_anthropic(OWN)
    assert [item["role"] for item in request["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    for item in request["messages"]:
        check(item, "anthropic.types", "MessageParam")
    for block in request["system"]:
        check(block, "anthropic.types", "TextBlockParam")


def test_the_golden_conversations_fit_the_types() -> None:
    for item in document("openai-responses")["input"]:
        check(item, "openai.types.responses", "ResponseInputItemParam")
    for item in document("anthropic")["messages"]:
        check(item, "anthropic.types", "MessageParam")


def test_the_check_can_fail() -> None:
    with pytest.raises(ValidationError):
        check({"role": "user", "content": [{"type": "text"}]}, "anthropic.types", "MessageParam")
    with pytest.raises(ValidationError):
        check({"role": "tool", "content": "x"}, "openai.types.chat", "ChatCompletionMessageParam")


def test_a_reply_of_anthropic_goes_back_without_the_fields_of_a_reply() -> None:
    from anthropic.types import Message as Reply

    usage = {"input_tokens": 1, "output_tokens": 2}
    content = [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "Hi"}]
    given = {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "content": content}
    reply = Reply.model_validate({**given, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage})
    message = from_anthropic(reply.model_dump(exclude_unset=True))
    made = messages_to_anthropic([Message.user("Hi"), message], reply_fields=False)["messages"][1]
    assert made == {"role": "assistant", "content": content}
    assert messages_to_anthropic([message])["messages"][0]["usage"] == usage


def test_replies_as_the_sdks_dump_them_are_read() -> None:
    from openai.types.chat import ChatCompletionMessage
    from openai.types.responses import ResponseOutputMessage

    chat = ChatCompletionMessage.model_validate({"role": "assistant", "content": "Hi"})
    for dumped in (chat.model_dump(), chat.model_dump(exclude_unset=True)):
        assert from_openai(dumped).text == "Hi"
    text = {"type": "output_text", "text": "Hi", "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    dumped = ResponseOutputMessage.model_validate(item).model_dump()
    assert messages_to_responses(messages_from_responses([dumped])) == [dumped]
    assert messages_from_anthropic([{"role": "assistant", "content": [text | {"type": "text"}]}])[0].text == "Hi"
