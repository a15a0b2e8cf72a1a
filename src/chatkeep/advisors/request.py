"""What advisors work on: the prompt of one turn, with what is new in it and what the memory shows."""

from __future__ import annotations

import abc
from typing import Any, Protocol

import msgspec

from chatkeep.memory.limits import named
from chatkeep.memory.steps import Steps
from chatkeep.message import Message, Text
from chatkeep.storage.backend import SYSTEM_ROLES


class Memory(Protocol):
    """What a chain needs of a memory: `get(conversation_id, *, upcoming)` and `add(conversation_id, *messages)`.

    Every ChatMemory and AsyncChatMemory is one; for `acall` and `astream` both methods are `async def`.
    """

    # Properties: what the methods return differs with the form.
    @property
    def get(self) -> Any: ...

    @property
    def add(self) -> Any: ...


class Request(msgspec.Struct, frozen=True):
    """The prompt of one turn on its way to the model. Advisors give changed copies."""

    conversation_id: str
    new: tuple[Message, ...]
    """What the caller gave: stored with the answer."""
    view: tuple[Message, ...]
    """The memory's view over the log and `new` together."""
    messages: tuple[Message, ...]
    """What is sent. At first no more than `new`."""

    @property
    def instructions(self) -> str:
        """The text of the system message that is sent, `""` without one."""
        return "".join(message.text for message in self.messages if message.role in SYSTEM_ROLES)

    def with_messages(self, messages: tuple[Message, ...]) -> Request:
        """With other messages to send."""
        return msgspec.structs.replace(self, messages=messages)

    def with_system_text(self, text: str) -> Request:
        """With this text in the system message, in place of its own; one is put first where there is none."""
        for index, message in enumerate(self.messages):
            if message.role in SYSTEM_ROLES:
                rest = tuple(part for part in message.parts if not isinstance(part, Text))
                changed = msgspec.structs.replace(message, parts=(Text(text), *rest))
                others = (each for each in self.messages[index + 1 :] if each.role not in SYSTEM_ROLES)
                return self.with_messages((*self.messages[:index], changed, *others))
        return self.with_messages((Message.system(text), *self.messages))


class Advisor(abc.ABC):
    """One step on the way of a prompt to the model. Advisors work in the order in which `advise` gets them."""

    @abc.abstractmethod
    def advise(self, request: Request) -> Steps[Request]:
        """The request as it goes on: a generator, so that one text serves both forms.

        `result = yield Ask(function, *arguments)` (from chatkeep.memory.steps) calls a function, which in `acall` and
        `astream` may be asynchronous. An error of it is raised at the yield; one that is let through ends the turn
        before the model is asked.
        """


class MemoryAdvisor(Advisor):
    """An advisor that shows the view of a memory and keeps the turns there. A chain has one at most."""

    def __init__(self, memory: Memory) -> None:
        for name in ("get", "add"):
            if not callable(getattr(memory, name, None)) or isinstance(memory, type):
                raise TypeError(
                    f"memory: expected a memory such as MessageWindowChatMemory(repository), got {named(memory)}"
                )
        self.memory = memory

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.memory!r})"


def speaks_for_itself(message: Message) -> bool:
    """Whether it is a user's and not only the results of tools."""
    return message.role == "user" and not (message.tool_results and len(message.tool_results) == len(message.parts))
