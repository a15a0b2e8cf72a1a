"""A stream that is left half-way. What of it is stored is the application's choice, and the next prompt is valid."""

import sys

from chatkeep import Message, open_repository
from chatkeep.advisors import MessageChatMemoryAdvisor, advise
from chatkeep.memory import MessageWindowChatMemory
from models import scripted

model = scripted(
    ["Once ", "upon ", "a time ", "there was ", "a very long story."],
    ["We were at: ", "once upon a time."],
)
# model = openai_streaming(OpenAI(), "a model's name")


def main(url: str = "sqlite:///streaming.db") -> None:
    with open_repository(url) as repository:
        memory = MessageWindowChatMemory(repository)
        chat = advise(model, MessageChatMemoryAdvisor(memory), on_error="keep_partial")

        with chat.stream([Message.user("Tell me a story.")], conversation_id="reader-1") as stream:
            for count, chunk in enumerate(stream, 1):
                print(chunk, end="", flush=True)
                if count == 3:
                    break  # the reader pressed stop; leaving the `with` closes the model's stream
        print("…")

        with chat.stream([Message.user("Where were we?")], conversation_id="reader-1") as stream:
            for chunk in stream:
                print(chunk, end="", flush=True)
        print()

        for message in repository.find_by_conversation_id("reader-1"):
            broken = " (broken off)" if message.metadata.get("chatkeep.partial") else ""
            print(f"stored: {message.role}: {message.text!r}{broken}")


if __name__ == "__main__":
    main(*sys.argv[1:])
