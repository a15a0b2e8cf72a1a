"""The formats by name, and whole conversations in them: what a file holds. Reads no file and no repository."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from chatkeep.errors import InvalidMessageError
from chatkeep.formats import anthropic, langchain4j, openai, responses, spring_ai
from chatkeep.formats.shared.losses import HINT
from chatkeep.formats.shared.objects import Json, json_type
from chatkeep.message import Message

Read: TypeAlias = Callable[[Json], list[Message]]
Write: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Format:
    """One format: how a conversation stands in a document, and the two ways."""

    name: str
    title: str
    """The format for people."""
    fields: tuple[str, ...]
    """The fields of a document that hold messages; the last one is the list that must be there."""
    rows: bool
    """A conversation is many objects, each with its `conversation_id`, and not one document."""
    _read: Read
    _write: Write
    text: bool = False
    """A text may stand for the list: it is one user message."""

    def read(self, document: Any) -> list[Message]:
        """The Messages of a document: an object with `fields`, or the list alone.

        Raises InvalidMessageError, or UnstorableValueError, with the path of what is wrong.
        """
        field = self.fields[-1]
        if type(document) is list:
            document = {field: document}
        if type(document) is not dict:
            raise InvalidMessageError(f"expected an object with {field!r}, or a list, got {json_type(document)}")
        if field not in document:
            raise InvalidMessageError(f"{field}: missing; {self.title} stand there")
        if type(document[field]) is not list and not (self.text and type(document[field]) is str):
            raise InvalidMessageError(f"{field}: expected a list, got {json_type(document[field])}")
        return self._read(document)

    def write(
        self,
        messages: Sequence[Message],
        *,
        conversation_id: str,
        drop_unsupported: bool = False,
        hint: str = HINT,
    ) -> Json:
        """The `fields` of a document. Raises InvalidMessageError with the path of what the format can't say."""
        options = {"drop_unsupported": drop_unsupported, "hint": hint}
        if self.rows:
            options["conversation_id"] = conversation_id
        made = self._write(messages, **options)
        return made if type(made) is dict else {self.fields[-1]: made}


def _read_anthropic(document: Json) -> list[Message]:
    return anthropic.messages_from_anthropic(document["messages"], system=document.get("system"))


def _list(field: str, read: Callable[[Any], list[Message]]) -> Read:
    return lambda document: read(document[field])


_ALL = (
    Format(
        "openai",
        "OpenAI chat completions",
        ("messages",),
        False,
        _list("messages", openai.messages_from_openai),
        openai.messages_to_openai,
    ),
    Format(
        "openai-responses",
        "items of OpenAI's Responses API",
        ("input",),
        False,
        _list("input", responses.messages_from_responses),
        responses.messages_to_responses,
        text=True,
    ),
    Format(
        "anthropic",
        "Anthropic messages",
        ("system", "messages"),
        False,
        _read_anthropic,
        anthropic.messages_to_anthropic,
    ),
    Format(
        "langchain4j",
        "LangChain4j's message JSON",
        ("messages",),
        False,
        _list("messages", langchain4j.messages_from_langchain4j),
        langchain4j.messages_to_langchain4j,
    ),
    Format(
        "spring-ai",
        "rows of Spring AI's JDBC repository",
        ("rows",),
        True,
        _list("rows", spring_ai.messages_from_spring_ai),
        spring_ai.messages_to_spring_ai,
    ),
    Format(
        "spring-ai-redis",
        "documents of Spring AI's Redis repository",
        ("documents",),
        True,
        _list("documents", spring_ai.messages_from_spring_ai_redis),
        spring_ai.messages_to_spring_ai_redis,
    ),
)

FORMATS = {one.name: one for one in _ALL}
"""The formats by name. A fixed table: nothing is imported by a name that data or a user gives."""
