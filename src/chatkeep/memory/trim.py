"""`boundary="message"`: the rules of LangChain4j's windows to the letter, for those who move from it. Pure.

Its rules are told at https://docs.langchain4j.dev/tutorials/chat-memory. The prompts they make can be invalid: a user's
question may be gone, a result may stand without its call, and the list may be empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chatkeep.memory.groups import SUMMARY_ROLE, holds_only_results, is_system
from chatkeep.message import Message


class Sizes:
    """What the limit counts: one for each message, or the token count of each and the overhead of a list."""

    def __init__(self, counts: Mapping[str, int] | None = None, overhead: int = 0) -> None:
        self._counts = counts
        self.overhead = overhead
        self.least = 1 if counts is None else 0

    def __getitem__(self, message: Message) -> int:
        return 1 if self._counts is None else self._counts[message.id]

    def of(self, messages: Sequence[Message]) -> int:
        """Of a list. An empty one takes nothing."""
        return sum(self[message] for message in messages) + self.overhead if messages else 0


def trimmed(messages: Sequence[Message], limit: int, sizes: Sizes) -> list[Message]:
    """The oldest messages go until the rest fits. A system message in front is spared, and results that directly follow
    an evicted call go with it, whichever call they answer."""
    kept = list(messages)
    size = sizes.of(kept)
    at = 0
    # Evicted messages lie before `at`; a spared system message is taken out and put back.
    spared: list[Message] = []
    while size > limit and at < len(kept):
        if not spared and is_system(kept[at]):
            spared = [kept[at]]
            at += 1
            continue
        evicted = kept[at]
        size -= sizes[evicted]
        at += 1
        if evicted.role == "assistant" and evicted.tool_calls:
            while at < len(kept) and holds_only_results(kept[at]):
                size -= sizes[kept[at]]
                at += 1
    return spared + kept[at:]


def after_adding(
    state: Sequence[Message], message: Message, limit: int, sizes: Sizes, *, system_first: bool
) -> list[Message]:
    """The running state of the original after one message: trim, replace the system message, insert, trim."""
    kept = trimmed(state, limit, sizes)
    if is_system(message):
        earlier = next((index for index, other in enumerate(kept) if is_system(other)), None)
        if earlier is not None:
            if kept[earlier].text == message.text:
                return list(state)
            del kept[earlier]
    if is_system(message) and system_first:
        kept.insert(0, message)
    else:
        kept.append(message)
    return trimmed(kept, limit, sizes)


def trimmed_log(
    messages: Sequence[Message],
    system: Message | None,
    limit: int,
    sizes: Sizes,
    *,
    system_first: bool,
    whole: bool = True,
) -> list[Message] | None:
    """One trim over a log in which only the newest system message counts; None where older messages decide.

    `messages` is the newest part of the log, oldest first; `whole` says that nothing lies before it.
    """
    place = None
    if system is not None and not system_first:
        place = max((index for index, message in enumerate(messages) if message.id == system.id), default=None)
    log = [
        message
        for index, message in enumerate(messages)
        if index == place or not (is_system(message) or message.role == SUMMARY_ROLE)
    ]
    front = [system] if system is not None and place is None else []
    if not whole:
        # Results in front may belong to a call before them. Behind them eviction surely stops, if it comes that far.
        sure = next((index for index, message in enumerate(log) if not holds_only_results(message)), len(log))
        log = log[sure:]
        if sizes.of(front + log) + sizes.least <= limit:
            return None
    return trimmed(front + log, limit, sizes)
