"""C12 any str: NUL, lone surrogates, astral and combining characters and all the others survive, reversibly."""

from __future__ import annotations

import pytest

from chatkeep import ChatMemoryRepository, Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from chatkeep.conformance.corpus import NASTY_TEXTS, readable
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import messages_of, new_id, said


def everywhere(text: str) -> list[Message]:
    """Messages that hold the text wherever a text can stand."""
    parts: list[Part] = [
        Text(text),
        Text("beside", {f"x-{text}": text}),
        Thinking(text, text),
        ToolCall(text, text, text),
        Media(text, url=text, name=text),
        ToolResult(text, text, text),
        ToolResult(text, (Text(text), Media("image/png", b"\0"))),
        Opaque(text, {text: [text, {text: text}]}),
    ]
    return [
        Message.user(text),
        Message.assistant(text, name=text, metadata={text: text, "list": [text, {text: text}]}),
        Message.tool(text, call_id=text, name=text),
        *(Message("assistant", (part,)) for part in parts),
        Message("assistant", tuple(parts), extra={f"x-{text}": text}),
    ]


class TestC12AnyStr:
    """A corpus of nasty texts, everywhere a text can stand."""

    @pytest.mark.parametrize("kind", NASTY_TEXTS)
    def test_any_text_survives_everywhere(
        self, repository: ChatMemoryRepository, conversation_id: str, kind: str
    ) -> None:
        """Content, keys, values, arguments, names, signatures: through append, save_all, find, history and delete."""
        messages = everywhere(NASTY_TEXTS[kind])
        repository.append(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert messages_of(repository.history(conversation_id).items) == messages
        repository.save_all(conversation_id, messages[::-1])
        assert repository.find_by_conversation_id(conversation_id) == messages[::-1]
        assert repository.append(conversation_id, messages) == repository.append(conversation_id, [])
        assert repository.delete_messages(conversation_id, [message.id for message in messages]) == len(messages)

    @needs("stored_content")
    def test_the_stored_text_can_be_read_by_people(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """The content column holds the text itself; only NUL and lone surrogates are shown as U+FFFD there."""
        messages = [Message.user(text) for text in NASTY_TEXTS.values()]
        repository.append(conversation_id, messages)
        stored = harness.stored_content(namespace, conversation_id)
        assert stored == [readable(text) for text in NASTY_TEXTS.values()]

    @needs("stored_content")
    def test_the_stored_text_of_other_kinds_can_be_read_by_people(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Texts and results, line by line; no JSON, and nothing of reasoning, calls and media."""
        repository.append(
            conversation_id,
            [
                Message.user([Text("one"), Media("image/png", b"x"), Text("two")], metadata={"a": "b"}),
                Message.assistant([Thinking("secret"), Text("shown")], tool_calls=[ToolCall("c", "f", '{"x": 1}')]),
                Message.tool("result", call_id="c"),
                Message.tool([Text("see"), Text("this")], call_id="c"),
                Message("assistant"),
            ],
        )
        stored = harness.stored_content(namespace, conversation_id)
        assert stored == ["one\ntwo", "shown", "result", "see\nthis", ""]

    @needs("conversation_metadata")
    @pytest.mark.parametrize("kind", NASTY_TEXTS)
    def test_any_text_survives_in_the_directory(
        self, repository: ChatMemoryRepository, conversation_id: str, kind: str
    ) -> None:
        """Keys and values of metadata; a title too, which refuses NUL and lone surrogates."""
        text = NASTY_TEXTS[kind]
        repository.append(conversation_id, said(1))
        metadata = {text: text, "list": [text]}
        assert repository.update_conversation(conversation_id, metadata=metadata).metadata == metadata
        if readable(text) == text:
            assert repository.update_conversation(conversation_id, title=text).title == text
        else:
            with pytest.raises(ValueError, match="title"):
                repository.update_conversation(conversation_id, title=text)
        conversation = repository.get_conversation(conversation_id)
        assert conversation is not None
        assert conversation.metadata == metadata
        assert conversation.title == (text if readable(text) == text else None)

    def test_a_role_may_be_any_word(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Open roles in any script, up to 64 characters."""
        messages = [Message(role, (Text("Hi"),)) for role in ("критик", "評論家", "a b", "R" * 64, "😀" * 64, "'; --")]
        repository.append(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages

    def test_nasty_message_ids_find_and_delete_their_own(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Deleting by one id never takes another that some comparison holds for the same."""
        ids = [text for text in NASTY_TEXTS.values() if text == text.strip() and text.isprintable() and text]
        messages = [Message.user(f"line {n}", id=f"{new_id('message')[:40]} {text}") for n, text in enumerate(ids)]
        repository.append(conversation_id, messages)
        assert repository.append(conversation_id, messages) == repository.append(conversation_id, [])
        for n, message in enumerate(messages):
            assert repository.delete_messages(conversation_id, [message.id]) == 1
            assert repository.find_by_conversation_id(conversation_id) == messages[n + 1 :]
