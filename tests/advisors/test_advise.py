"""What is refused when a chain is made or used wrongly, and the answers that no rule of the suite gives."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from chatkeep import (
    InvalidAnswerError,
    Message,
    Text,
    Thinking,
    TurnNotStoredError,
    open_async_repository,
    open_repository,
)
from chatkeep.advisors import (
    Advisor,
    MessageChatMemoryAdvisor,
    PromptChatMemoryAdvisor,
    Request,
    VectorStoreChatMemoryAdvisor,
    advise,
)
from chatkeep.advisors.rendering import Template
from chatkeep.conformance.scripted import ListStore, WordEmbedding
from chatkeep.memory import AsyncMessageWindowChatMemory, MessageWindowChatMemory
from chatkeep.memory.steps import Ask, Steps
from chatkeep.vectors import VectorMemory


@pytest.fixture
def memory() -> Iterator[MessageWindowChatMemory]:
    with open_repository("inprocess:") as repository:
        yield MessageWindowChatMemory(repository)


def echo(messages: list[Message]) -> str:
    return f"You said: {messages[-1].text}"


@pytest.mark.parametrize(
    "text",
    [
        "", "{memory}", "{instructions}", "{instructions} {memory} {memory}", "{instructions} {memory} {other}",
        "{instructions} {memory} {", "{instructions} {memory} }", "{instructions} {memory} {}",
        "{instructions!r} {memory}",
        "{instructions} {memory:>10}", "{instructions} {memory.__class__}", "{instructions} {memory[0]}",
        "{instructions} {memory} {0}",
    ],
)  # fmt: skip
def test_a_template_without_its_two_places_is_refused_when_it_is_made(
    memory: MessageWindowChatMemory, text: str
) -> None:
    with pytest.raises(ValueError, match="template"):
        PromptChatMemoryAdvisor(memory, template=text)
    with pytest.raises(TypeError, match="template"):
        PromptChatMemoryAdvisor(memory, template=None)  # type: ignore[arg-type]


def test_a_template_puts_values_between_its_pieces() -> None:
    template = Template("{{x}} {memory} / {instructions}")
    assert template.render("{memory} {{y}}", "{instructions} %s") == "{x} {instructions} %s / {memory} {{y}}"


def test_what_is_no_chain_is_refused(memory: MessageWindowChatMemory) -> None:
    advisor = MessageChatMemoryAdvisor(memory)
    wrong: list[tuple[type[Exception], Any]] = [
        (TypeError, lambda: advise(None, advisor)),  # type: ignore[arg-type]
        (TypeError, lambda: advise(echo, memory)),  # type: ignore[arg-type]
        (TypeError, lambda: advise(echo, MessageChatMemoryAdvisor)),  # type: ignore[arg-type]
        (TypeError, lambda: MessageChatMemoryAdvisor(memory.repository)),  # type: ignore[arg-type]
        (TypeError, lambda: MessageChatMemoryAdvisor(MessageWindowChatMemory)),  # type: ignore[arg-type]
        (TypeError, lambda: VectorStoreChatMemoryAdvisor(memory)),  # type: ignore[arg-type]
        (ValueError, lambda: advise(echo)),
        (ValueError, lambda: advise(echo, advisor, advisor)),
        (ValueError, lambda: advise(echo, advisor, on_error="ignore")),  # type: ignore[arg-type]
    ]
    for error, make in wrong:
        with pytest.raises(error):
            make()
    advised = advise(echo, advisor)
    for messages in ("Hi", {"role": "user"}, [{"role": "user"}], None, [None]):
        with pytest.raises(TypeError):
            advised.call(messages, conversation_id="one")  # type: ignore[arg-type]


def test_the_forms_do_not_mix(memory: MessageWindowChatMemory) -> None:
    """A blocking memory would hold up the event loop, and an asynchronous model can't be called by `call`."""

    async def awaited(messages: list[Message]) -> str:
        return "Hi"

    async def streamed(messages: list[Message]) -> AsyncIterator[str]:
        yield "Hi"

    advisor = MessageChatMemoryAdvisor(memory)
    with pytest.raises(TypeError, match="Async"):
        asyncio.run(advise(echo, advisor).acall([Message.user("Hi")], conversation_id="one"))
    with pytest.raises(TypeError, match="Async"):
        advise(echo, advisor).astream([Message.user("Hi")], conversation_id="one")
    with pytest.raises(InvalidAnswerError, match="acall or astream"):
        advise(streamed, advisor).call([Message.user("Hi")], conversation_id="one")
    with pytest.raises(InvalidAnswerError, match="acall or astream"):
        advise(awaited, advisor).call([Message.user("Hi")], conversation_id="one")

    async def all_of_them() -> list[str]:
        async with await open_async_repository("inprocess:") as repository:
            chains = [advise(model, MessageChatMemoryAdvisor(AsyncMessageWindowChatMemory(repository)))
                      for model in (echo, awaited, streamed)]  # fmt: skip
            return [
                (await chain.acall([Message.user("Hi")], conversation_id=f"{number}")).text
                for number, chain in enumerate(chains)
            ]

    assert asyncio.run(all_of_them()) == ["You said: Hi", "Hi", "Hi"]


def test_every_form_of_an_answer(memory: MessageWindowChatMemory) -> None:
    whole = Message.assistant("Hi")
    answers: list[Any] = [
        Message.assistant("Hi"),
        "Hi",
        ["H", "i"],
        [whole],
        iter(["Hi"]),
        ["H", Thinking("hm"), "i"],
        Text("Hi"),
    ]
    advised = advise(lambda _: answers.pop(0), MessageChatMemoryAdvisor(memory))
    while answers:
        answer = advised.call(Message.user("?"), conversation_id="one")
        assert answer.text == "Hi"
        assert answer.message.role == "assistant"
    assert not [message for message in memory.get("one") if not message.parts]


def test_an_answer_with_the_prompt_in_it_is_stored_without(memory: MessageWindowChatMemory) -> None:
    """Some frameworks give the whole conversation back."""
    advised = advise(lambda messages: [*messages, Message.assistant("Hi")], MessageChatMemoryAdvisor(memory))
    for _ in range(3):
        advised.call([Message.user("?")], conversation_id="one")
    assert [message.text for message in memory.get("one")] == ["?", "Hi"] * 3


def test_advisors_work_in_their_order(memory: MessageWindowChatMemory) -> None:
    class Adds(Advisor):
        def __init__(self, text: str) -> None:
            self.text = text

        def advise(self, request: Request) -> Steps[Request]:
            said: str = yield Ask(str.upper, self.text)
            return request.with_system_text(f"{request.instructions}{said}")

    prompts: list[list[Message]] = []
    advised = advise(
        lambda messages: prompts.append(messages) or "Hi", MessageChatMemoryAdvisor(memory), Adds("a"), Adds("b")
    )
    advised.call([Message.system("x"), Message.user("?")], conversation_id="one")
    advised.call([Message.user("?")], conversation_id="two")
    assert [prompt[0].text for prompt in prompts] == ["xAB", "AB"]
    assert [message.text for message in memory.get("one")] == ["x", "?", "Hi"], "what advisors add is not stored"


def test_an_advisor_that_fails_ends_the_turn_before_the_model(memory: MessageWindowChatMemory) -> None:
    class Fails(Advisor):
        def advise(self, request: Request) -> Steps[Request]:
            raise LookupError("no")
            yield

    advised = advise(echo, MessageChatMemoryAdvisor(memory), Fails(), on_error="keep_partial")
    with pytest.raises(LookupError):
        advised.call([Message.user("?")], conversation_id="one")
    assert memory.get("one") == []


def test_vectors_alone_keep_the_turns_in_their_repository() -> None:
    with open_repository("inprocess:") as repository:
        vectors = VectorMemory(repository, WordEmbedding(), model="words", store=ListStore())
        prompts: list[list[Message]] = []
        advised = advise(
            lambda messages: prompts.append(messages) or "Noted.",
            VectorStoreChatMemoryAdvisor(vectors, top_k=1, threshold=0.4),
        )
        question = Message.user("what is my dog called")
        for message in (Message.user("my dog is called Rex"), Message.user("nice weather"), question, question):
            advised.call([message], conversation_id="one")
        assert [len(prompt) for prompt in prompts] == [1, 1, 2]
        assert '"my dog is called Rex"' in prompts[-1][0].text
        assert repository.count_messages("one") == 6


def test_calls_that_are_answered_now_are_sent_as_messages(memory: MessageWindowChatMemory) -> None:
    """Beside memory as text: a result without its call would be no valid prompt."""
    from chatkeep import ToolCall

    call = Message.assistant(tool_calls=[ToolCall("c", "look", "{}")])
    memory.add("one", Message.user("earlier"), Message.assistant("yes"), Message.user("look!"), call)
    prompts: list[list[Message]] = []
    advised = advise(lambda messages: prompts.append(messages) or "Seen.", PromptChatMemoryAdvisor(memory))
    advised.call([Message.tool("a cat", call_id="c")], conversation_id="one")
    assert [message.role for message in prompts[0]] == ["system", "user", "assistant", "tool"]
    assert "earlier" in prompts[0][0].text
    assert "look!" not in prompts[0][0].text


def test_what_fails_while_keeping_is_a_note_on_the_first_error() -> None:
    class Broken:
        def get(self, conversation_id: str, *, upcoming: Any = ()) -> list[Message]:
            return list(upcoming)

        def add(self, conversation_id: str, *messages: Message) -> None:
            raise OSError("disk full")

    def dies(messages: list[Message]) -> Iterator[str]:
        yield "Hi"
        raise RuntimeError("dead")

    advisor = MessageChatMemoryAdvisor(Broken())
    with pytest.raises(RuntimeError, match="dead") as caught:
        advise(dies, advisor, on_error="keep_partial").call([Message.user("?")], conversation_id="one")
    assert "disk full" in caught.value.__notes__[0]
    with pytest.raises(TurnNotStoredError) as lost:
        advise(echo, advisor).call([Message.user("?")], conversation_id="one")
    assert [message.text for message in lost.value.messages] == ["?", "You said: ?"]
    assert "You said" not in str(lost.value)
