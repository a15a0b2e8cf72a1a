"""A real embedding model, whose weights ship in its package: what is meant is found although no word is the same."""

from pathlib import Path
from typing import Any

import pytest

from chatkeep import Message, open_repository
from chatkeep.advisors import MessageChatMemoryAdvisor, VectorStoreChatMemoryAdvisor, advise
from chatkeep.memory import TurnWindowChatMemory
from chatkeep.vectors import InProcessVectorStore, VectorMemory

SAID = (
    "Our puppy is named Rex.",
    "The forecast for Lisbon says sunshine all week.",
    "I am allergic to peanuts and shellfish.",
    "My car broke down on the motorway yesterday.",
)
ASKED = {
    "Which pets do I have?": 0,
    "Will it rain in Portugal?": 1,
    "What allergies do I have?": 2,
    "engine trouble": 3,
}


@pytest.fixture(scope="module")
def embed() -> Any:
    import wordllama

    # The tokenizer lies in another folder of the package than its loader looks in first.
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    return model.embed


@pytest.mark.parametrize("where", ["store", "tables"])
def test_what_is_meant_is_found(embed: Any, where: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"store": InProcessVectorStore()} if where == "store" else {"distance": "numpy"}
    with open_repository(f"sqlite:///{tmp_path}/chat.db") as repository:
        memory = VectorMemory(repository, embed, model="wordllama l2_supercat 256", **options)
        repository.append("thread", [Message.user(text) for text in SAID])
        for question, answer in ASKED.items():
            assert memory.search("thread", question, top_k=1)[0].message.text == SAID[answer], question


def test_a_turn_that_left_the_window_comes_back(embed: Any) -> None:
    prompts: list[list[Message]] = []

    def model(messages: list[Message]) -> str:
        prompts.append(messages)
        return "Noted."

    with open_repository("inprocess:") as repository:
        memory = VectorMemory(repository, embed, model="wordllama", store=InProcessVectorStore())
        advised = advise(
            model,
            MessageChatMemoryAdvisor(TurnWindowChatMemory(repository, max_turns=1)),
            VectorStoreChatMemoryAdvisor(memory, top_k=1, threshold=0.1),
        )
        for text in (*SAID, "Which pets do I have?"):
            advised.call([Message.user(text)], conversation_id="thread")
    assert [message.role for message in prompts[-1]] == ["system", "user"]
    assert SAID[0] in prompts[-1][0].text
    assert not any(text in prompts[-1][0].text for text in SAID[1:])
