"""What is stored and read: a turn of two messages, and conversations with the usual share of tool calls."""

from __future__ import annotations

from chatkeep import ChatMemoryRepository, Message, ToolCall

QUESTION = "Could you tell me how that works? " * 4
ANSWER = "Some answer of the usual length. " * 16
CHUNK = 5_000
"""Messages in one append while seeding."""

WINDOW = 20
"""How many of the newest messages are read."""

TURN = (("user", QUESTION), ("assistant", ANSWER))


def turn() -> list[Message]:
    return [Message.user(QUESTION), Message.assistant(ANSWER)]


def mixed(count: int) -> list[Message]:
    """Of ten messages a tool call and its result have a JSON body, eight are plain text."""
    return [_mixed(number) for number in range(count)]


def _mixed(number: int) -> Message:
    place = number % 10
    if place == 3:
        call = ToolCall(f"call_{number}", "search_orders", '{"customer": "C-1042", "status": ["open", "late"]}')
        return Message.assistant("Let me look.", tool_calls=[call])
    if place == 4:
        return Message.tool(
            '{"orders": [{"id": 17, "total": "12.50"}]}', call_id=f"call_{number - 1}", name="search_orders"
        )
    return Message.assistant(ANSWER) if place in (1, 5, 7, 9) else Message.user(QUESTION)


def seed(repository: ChatMemoryRepository, conversation_id: str, count: int) -> None:
    for start in range(0, count, CHUNK):
        repository.append(conversation_id, mixed(min(CHUNK, count - start)))
