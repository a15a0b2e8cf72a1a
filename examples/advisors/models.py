"""Models for the examples: one that follows a script, the SDKs of two providers, and a loop that runs tools."""

from collections.abc import Callable, Iterator
from typing import Any

from chatkeep import Message
from chatkeep.formats.anthropic import from_anthropic, messages_to_anthropic
from chatkeep.formats.openai import from_openai, messages_to_openai

Model = Callable[[list[Message]], Any]


def scripted(*answers: Any) -> Model:
    """Says one answer after the other: a str, a Message, or a list of chunks to stream."""
    left = list(answers)

    def model(messages: list[Message]) -> Any:
        return left.pop(0)

    return model


def openai(client: Any, name: str, **options: Any) -> Model:
    """`openai(OpenAI(), "a model's name", tools=[…])`"""

    def model(messages: list[Message]) -> Message:
        reply = client.chat.completions.create(model=name, messages=messages_to_openai(messages), **options)
        return from_openai(reply.choices[0].message.model_dump(exclude_unset=True))

    return model


def openai_streaming(client: Any, name: str, **options: Any) -> Model:
    """The same, word by word."""

    def model(messages: list[Message]) -> Iterator[str]:
        with client.chat.completions.create(
            model=name, messages=messages_to_openai(messages), stream=True, **options
        ) as chunks:
            for chunk in chunks:
                if chunk.choices and chunk.choices[0].delta.content:
                    yield chunk.choices[0].delta.content

    return model


def anthropic(client: Any, name: str, **options: Any) -> Model:
    """`anthropic(Anthropic(), "a model's name", tools=[…])`"""

    def model(messages: list[Message]) -> Message:
        request = messages_to_anthropic(messages, reply_fields=False)
        reply = client.messages.create(model=name, **request, **{"max_tokens": 1024, **options})
        return from_anthropic(reply.model_dump(exclude_unset=True))

    return model


def anthropic_streaming(client: Any, name: str, **options: Any) -> Model:
    """The same, word by word."""

    def model(messages: list[Message]) -> Iterator[str]:
        request = messages_to_anthropic(messages, reply_fields=False)
        with client.messages.stream(model=name, **request, **{"max_tokens": 1024, **options}) as stream:
            yield from stream.text_stream

    return model


def with_tools(model: Model, functions: dict[str, Callable[[str], str]], rounds: int = 5) -> Model:
    """Runs the tools that the model calls, and gives every message on the way: they belong to the turn."""

    def run(messages: list[Message]) -> Iterator[Message]:
        for _ in range(rounds):
            said = model(messages)
            if isinstance(said, str):
                said = Message.assistant(said)
            yield said
            if not said.tool_calls:
                return
            messages = [*messages, said]
            for call in said.tool_calls:
                result = Message.tool(functions[call.name](call.arguments), call_id=call.id, name=call.name)
                messages.append(result)
                yield result
        raise RuntimeError(f"the model still calls tools after {rounds} rounds")

    return run
