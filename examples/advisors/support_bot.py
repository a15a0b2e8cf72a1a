"""A support bot with a tool. The turn is stored with its tool rounds, and a second process goes on from there."""

import json
import sys

from chatkeep import Message, ToolCall, open_repository
from chatkeep.advisors import MessageChatMemoryAdvisor, advise
from chatkeep.memory import MessageWindowChatMemory
from models import scripted, with_tools

ORDERS = {"A-17": "left the warehouse on Monday"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "order_status",
            "description": "Where an order is.",
            "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
        },
    }
]
RULES = Message.system("You are the support of a shop for tea. Be brief.")


def order_status(arguments: str) -> str:
    return ORDERS.get(json.loads(arguments)["order"], "unknown order")


model = scripted(
    Message.assistant(tool_calls=[ToolCall("call_1", "order_status", '{"order": "A-17"}')]),
    "Your order A-17 left the warehouse on Monday.",
    "It was A-17.",
)
# model = openai(OpenAI(), "a model's name", tools=TOOLS)


def main(url: str = "sqlite:///support.db") -> None:
    with open_repository(url) as repository:
        memory = MessageWindowChatMemory(repository, max_messages=20)
        bot = advise(with_tools(model, {"order_status": order_status}), MessageChatMemoryAdvisor(memory))
        for question in ("Where is my order A-17?", "Which order did I ask about?"):
            print("customer:", question)
            answer = bot.call([RULES, Message.user(question)], conversation_id="customer-1")
            print("bot:", answer.text)
        print("stored:", ", ".join(message.role for message in repository.find_by_conversation_id("customer-1")))


if __name__ == "__main__":
    main(*sys.argv[1:])
