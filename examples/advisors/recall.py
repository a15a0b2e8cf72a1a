"""Recall through vectors: a fact that left the window long ago is found when a question is about it."""

import sys

from chatkeep import Message, open_repository
from chatkeep.advisors import MessageChatMemoryAdvisor, VectorStoreChatMemoryAdvisor, advise
from chatkeep.memory import TurnWindowChatMemory
from chatkeep.vectors import VectorMemory
from models import scripted

SAID = ["My dog is called Rex.", "The weather is fine.", "I like green tea.", "What was my dog called?"]
WORDS = ["my", "dog", "is", "called", "rex", "the", "weather", "fine", "i", "like", "green", "tea", "what", "was"]

answers = scripted("A good name.", "Enjoy it!", "Which one?", "Rex.")
# answers = openai(OpenAI(), "a model's name")


def embed(texts: list[str]) -> list[list[float]]:
    """An embedding model's work; here a vector counts the words. With the SDK:
    `[item.embedding for item in client.embeddings.create(model=…, input=texts).data]`"""
    return [[float(text.lower().strip(".?").split().count(word)) for word in WORDS] for text in texts]


def model(messages: list[Message]):
    if messages[0].role == "system":
        print("recalled:", messages[0].text.partition("<recalled>\n")[2].partition("\n</recalled>")[0])
    return answers(messages)


def main(url: str = "sqlite:///recall.db", distance: str | None = "numpy") -> None:
    with open_repository(url) as repository:
        # On SQLite without `distance` by the extension sqlite-vec; on PostgreSQL always by pgvector.
        vectors = VectorMemory(repository, embed, model="word counts", distance=distance)
        chat = advise(
            model,
            MessageChatMemoryAdvisor(TurnWindowChatMemory(repository, max_turns=1)),
            VectorStoreChatMemoryAdvisor(vectors, top_k=1, threshold=0.5),
        )
        for text in SAID:
            print("you:", text)
            print("model:", chat.call([Message.user(text)], conversation_id="dog-owner").text)


if __name__ == "__main__":
    main(*sys.argv[1:])
