"""MessageChatMemoryAdvisor: the memory is sent as messages."""

from __future__ import annotations

from chatkeep.advisors.request import MemoryAdvisor, Request
from chatkeep.memory.steps import Steps


class MessageChatMemoryAdvisor(MemoryAdvisor):
    """Sends the memory's view over the log and the new messages together, so that its limit holds for what is sent.

    With `boundary="turn"`, which is the memories' default, that is a valid prompt whatever the log holds: also after a
    turn that a crash left unanswered.
    """

    def advise(self, request: Request) -> Steps[Request]:
        return request.with_messages(request.view)
        yield
