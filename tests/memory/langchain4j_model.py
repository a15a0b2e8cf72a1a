"""A model of LangChain4j's two window memories, written from a description of their behaviour, for comparison alone.

It holds a list and shares no code with chatkeep.memory: the point is that two readings of the rules agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chatkeep import Message, ToolResult

Size = Callable[[Message], int]


class Original:
    """`limit` in messages; with `size` in tokens, `overhead` being what the estimate of a list has beyond its parts."""

    def __init__(
        self, limit: int, size: Size | None = None, overhead: int = 0, *, always_keep_system_message_first: bool = False
    ) -> None:
        self.limit = limit
        self.size = size
        self.overhead = overhead
        self.system_first = always_keep_system_message_first
        self.store: list[Message] = []

    def add(self, message: Message) -> None:
        held = self.store.copy()
        self.evict(held)
        system = message.role == "system"
        if system:
            found = [other for other in held if other.role == "system"]
            if found:
                if found[0].text == message.text:
                    return
                held.remove(found[0])
        if system and self.system_first:
            held.insert(0, message)
        else:
            held.append(message)
        self.evict(held)
        self.store = held

    def set(self, messages: Iterable[Message]) -> None:
        held = list(messages)
        self.evict(held)
        self.store = held

    def clear(self) -> None:
        self.store = []

    def messages(self) -> list[Message]:
        view = self.store.copy()
        self.evict(view)
        return view

    def evict(self, held: list[Message]) -> None:
        if not held:
            return
        current = len(held) if self.size is None else self.overhead + sum(map(self.size, held))
        while current > self.limit and held:
            index = int(held[0].role == "system")
            if index == len(held):
                return
            current -= self.take(held, index)

    def take(self, held: list[Message], index: int) -> int:
        gone = [held.pop(index)]
        if gone[0].role == "assistant" and gone[0].tool_calls:
            while index < len(held) and is_result(held[index]):
                gone.append(held.pop(index))
        return len(gone) if self.size is None else sum(map(self.size, gone))


def is_result(message: Message) -> bool:
    return message.role == "tool" and all(isinstance(part, ToolResult) for part in message.parts)
