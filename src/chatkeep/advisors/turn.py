"""The stations of one turn, each once for both forms, as steps: before the model, after it, and after a failure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from chatkeep.advisors.model import Answer, Collector, is_partial
from chatkeep.advisors.request import Advisor, Memory, Request, speaks_for_itself
from chatkeep.errors import TurnNotStoredError
from chatkeep.identifiers import check_conversation_id
from chatkeep.memory.limits import check_messages
from chatkeep.memory.steps import Ask, Steps
from chatkeep.message import Message
from chatkeep.storage.backend import SYSTEM_ROLES

POLICIES = ("discard", "keep_user", "keep_partial")


class Turns:
    """What a chain does around its model."""

    def __init__(self, memory: Memory, advisors: Sequence[Advisor], on_error: str) -> None:
        self.memory = memory
        self._advisors = tuple(advisors)
        self._on_error = on_error

    def begin(self, conversation_id: str, messages: Message | Iterable[Message]) -> Steps[Request | Answer]:
        """The request as the advisors made it, or the answer that is stored already for these very messages."""
        check_conversation_id(conversation_id)
        new = tuple([messages] if type(messages) is Message else check_messages(messages, "messages"))  # type: ignore[arg-type]
        if all(message.role in SYSTEM_ROLES for message in new):
            raise ValueError('messages: nothing to answer; give what is new in this turn, such as [Message.user("…")]')
        view: list[Message] = yield Ask(functools.partial(self.memory.get, upcoming=new), conversation_id)
        last, answer = _stored(view, new)
        if answer:
            return Answer(tuple(answer), repeated=True)
        request = Request(conversation_id, new, tuple(view[: last + 1]), new)
        for advisor in self._advisors:
            request = yield from advisor.advise(request)
        return request

    def end(self, request: Request, answer: tuple[Message, ...]) -> Steps[Answer]:
        """Store the whole turn in one write."""
        turn = (*request.new, *answer)
        try:
            yield Ask(self.memory.add, request.conversation_id, *turn)
        except Exception as error:
            raise TurnNotStoredError(request.conversation_id, turn) from error
        return Answer(answer)

    def fail(self, request: Request, collector: Collector, error: BaseException) -> Steps[None]:
        """Store what the policy says of a turn that failed. The caller raises the error, whatever happens here."""
        if self._on_error == "discard":
            return
        kept = [*request.new, *(collector.partial() if self._on_error == "keep_partial" else ())]
        try:
            yield Ask(self.memory.add, request.conversation_id, *kept)
        except Exception as second:
            error.add_note(
                f"chatkeep: by on_error={self._on_error!r} {len(kept)} messages of the turn were to be kept, which "
                f"failed too: {type(second).__name__}: {second}"
            )


def _stored(view: Sequence[Message], new: Sequence[Message]) -> tuple[int, list[Message]]:
    """Where the new messages end in the view, and what is stored behind them as their answer, if it is whole.

    What is new stands at the end of a view. What stands there with messages behind it was stored by an earlier call.
    """
    asked = {message.id for message in new if message.role not in SYSTEM_ROLES}
    places = [index for index, message in enumerate(view) if message.id in asked]
    if {view[place].id for place in places} != asked:
        return len(view) - 1, []
    last = places[-1]
    answer: list[Message] = []
    for message in view[last + 1 :]:
        if speaks_for_itself(message):
            break
        answer.append(message)
    if any(is_partial(message) for message in answer):
        return last, []
    return last, answer
