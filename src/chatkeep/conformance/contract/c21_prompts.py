"""C21 prompt safety: what is remembered is text, and can neither break a template nor forge a line or close a tag."""

from __future__ import annotations

import json
import unicodedata
from typing import Any, cast

import pytest

from chatkeep import ChatMemoryRepository, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from chatkeep.advisors import PromptChatMemoryAdvisor, VectorStoreChatMemoryAdvisor, advise
from chatkeep.conformance.blocking import wait_for
from chatkeep.conformance.corpus import FORGERIES, NASTY_TEXTS
from chatkeep.conformance.harness import Form, needs
from chatkeep.conformance.scripted import AsyncScripted, ListStore, SyncScripted, WordEmbedding, vector_memory
from chatkeep.memory import AsyncMessageWindowChatMemory, MessageWindowChatMemory

CORPUS = {**NASTY_TEXTS, **FORGERIES}
TEMPLATE = "RULES {{braces}}\n{instructions}\n<memory>\n{memory}\n</memory>\nEND"
INSTRUCTIONS = "Be kind. {memory} {instructions} </memory> {{x}} %s"


def system_text(repository: ChatMemoryRepository, form: Form, conversation_id: str, *kinds: str) -> str:
    """What the model gets as its system message when the memory is rendered into it."""
    memory: Any
    if form == "sync":
        memory = MessageWindowChatMemory(repository, max_messages=1000)
    else:
        memory = AsyncMessageWindowChatMemory(cast(Any, repository).asynchronous, max_messages=1000)
    advisors: list[Any] = [PromptChatMemoryAdvisor(memory, template=TEMPLATE)]
    if "vectors" in kinds:
        vectors = vector_memory(repository, WordEmbedding(), store=ListStore())
        advisors = [
            VectorStoreChatMemoryAdvisor(
                getattr(vectors, "asynchronous", vectors), top_k=1000, threshold=-1.0, template=TEMPLATE
            )
        ]
    new = [Message.system(INSTRUCTIONS), Message.user("What now?")]
    model: Any = SyncScripted(["Nothing."]) if form == "sync" else AsyncScripted(["Nothing."])
    advised = advise(model, *advisors)
    if form == "sync":
        advised.call(new, conversation_id=conversation_id)
    else:
        wait_for(advised.acall(new, conversation_id=conversation_id))
    (prompt,) = model.prompts
    assert [message.role for message in prompt] == ["system", "user"]
    assert prompt[1] == new[1]
    return str(prompt[0].text)


def remembered(text: str) -> list[dict[str, Any]]:
    """The lines of the memory section, after checks of all that stands around them."""
    before, _, rest = text.partition("\n<memory>\n")
    assert before == f"RULES {{braces}}\n{INSTRUCTIONS}"
    section, _, after = rest.partition("\n</memory>\n")
    assert after == "END"
    for character in "<>&`":
        assert character not in unicodedata.normalize("NFKC", section)
    assert [character for character in section if unicodedata.category(character) in UNSEEN and character != "\n"] == []
    assert section.splitlines() == section.split("\n"), "a line ends where none should"
    return [json.loads(line) for line in section.split("\n")]


UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


class TestC21Prompts:
    """A corpus of forgeries, stored and rendered into the system message."""

    @pytest.mark.parametrize("name", CORPUS)
    def test_a_text_is_one_line_whatever_it_holds(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, name: str
    ) -> None:
        """One JSON object on a line of its own, which gives the very text back; the template around it is whole."""
        text = CORPUS[name]
        said = [Message.user(f"before {text}"), Message.assistant(text + "x"), Message.user("plain")]
        repository.append(conversation_id, said)
        lines = remembered(system_text(repository, form, conversation_id))
        assert [line["text"] for line in lines] == [message.text for message in said]
        assert [line["role"] for line in lines] == ["user", "assistant", "user"]

    def test_every_part_of_a_message_is_escaped(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str
    ) -> None:
        """Names, arguments, results, media names and the roles that people invent."""
        for number, evil in enumerate(FORGERIES.values()):
            call = ToolCall(f"call-{number}", f"name {evil}", evil)
            repository.append(
                conversation_id,
                [
                    Message("user", (Text(f"ask {evil}"), Media("image/png", data=b"x", name=evil)), name=evil),
                    Message("assistant", (Thinking(evil), Text("see"), Opaque(f"x {evil}", {}), call)),
                    Message("tool", (ToolResult(call.id, f"is {evil}", name=evil, is_error=True),)),
                    Message.assistant(f"answer {evil}"),
                ],
            )
        lines = remembered(system_text(repository, form, conversation_id))
        assert len(lines) == 4 * len(FORGERIES)
        for number, evil in enumerate(FORGERIES.values()):
            asked, called, result, answered = lines[4 * number : 4 * number + 4]
            assert asked == {
                "role": "user", "name": evil, "text": f"ask {evil}", "attached": [f"{evil} (image/png)"]
            }  # fmt: skip
            assert called["tool_calls"] == [{"name": f"name {evil}", "arguments": evil}]
            assert called["attached"] == [f"x {evil}"]
            assert result["tool_results"] == [{"name": evil, "text": f"is {evil}", "is_error": True}]
            assert answered["text"] == f"answer {evil}"
            assert "thinking" not in str(called)

    @needs("stable_positions")
    def test_what_is_recalled_is_escaped_too(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str
    ) -> None:
        """By the advisor of vectors, which shares the rules."""
        said = [Message.user(f"now {text}") for text in CORPUS.values()]
        repository.append(conversation_id, said)
        lines = remembered(system_text(repository, form, conversation_id, "vectors"))
        assert [line["text"] for line in lines] == [message.text for message in said]
