"""A long conversation in a small window: what leaves it is summed up, and the log keeps every word."""

import sys

from chatkeep import Message, open_repository
from chatkeep.advisors import MessageChatMemoryAdvisor, advise
from chatkeep.memory import SummarizingChatMemory
from models import scripted

FACTS = ["My name is Ada.", "I live in Oslo.", "I play the cello.", "I have two cats.", "I work at night."]

model = scripted(*["Noted."] * len(FACTS), "You are Ada from Oslo.")
# model = openai(OpenAI(), "a model's name")


def summarize(messages: list[Message], previous: str | None) -> str:
    """A model's work; here the questions are strung together."""
    said = [message.text for message in messages if message.role == "user"]
    return " ".join([previous, *said] if previous else said)


def main(url: str = "sqlite:///summaries.db") -> None:
    with open_repository(url) as repository:
        memory = SummarizingChatMemory(repository, summarize, max_turns=2, keep_turns=1)
        chat = advise(model, MessageChatMemoryAdvisor(memory))
        for text in [*FACTS, "Who am I?"]:
            answer = chat.call([Message.user(text)], conversation_id="ada")
        print("answer:", answer.text)
        for message in memory.get("ada"):
            print(f"in view: {message.role}: {message.text}")
        print("in the log:", repository.count_messages("ada"), "messages")


if __name__ == "__main__":
    main(*sys.argv[1:])
