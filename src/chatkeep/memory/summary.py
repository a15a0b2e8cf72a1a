"""SummarizingChatMemory: what would fall out of the window is summed up by a function of the user's, and stays in view.

The summary is a row of the log with the position that it covers; the log itself stays whole.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.errors import ConcurrentChangeError, StorageError
from chatkeep.identifiers import check_conversation_id
from chatkeep.memory.construction import MemoryOver, OnOverflow, R, require
from chatkeep.memory.estimators import HeuristicTokenCountEstimator
from chatkeep.memory.groups import groups_of
from chatkeep.memory.limits import Limit, check_limit
from chatkeep.memory.memory import AsyncChatMemory, ChatMemory
from chatkeep.memory.operations import KeepOperations, Settings
from chatkeep.memory.rules import Kind, MessageKind, TurnKind
from chatkeep.memory.steps import Ask, Pause, Steps
from chatkeep.memory.summary_rules import (
    Uncovered,
    evictable,
    said_in,
    shown_system,
    summary_row,
    uncovered,
)
from chatkeep.memory.token_window import TokenKind
from chatkeep.memory.tokens import TokenCountEstimator
from chatkeep.memory.window import Turns, View, newest_system, turn_view, without_repeated_system
from chatkeep.message import Message
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.context import Context, extend_context, read_context, store_counts
from chatkeep.storage.repository import Calls
from chatkeep.storage.runner import Call

Summarize: TypeAlias = Callable[[list[Message], str | None], str | Awaitable[str]]
"""Gets the messages that leave the window and the summary so far, and gives a summary of both."""

LEAST_LOOK_BACK = 1000
"""A summary is looked for in so many of the newest messages, or in ten times the limit."""

_log = logging.getLogger("chatkeep.memory")


class _Due:
    """A summary that is to be made: of what, and up to where."""

    def __init__(self, rest: Uncovered, count: int, version: int) -> None:
        self.messages = said_in(rest.messages[:count])
        self.covered = {message.id for message in rest.messages[:count]}
        self.position = rest.positions[count - 1]
        self.message_id = rest.messages[count - 1].id
        self.previous = None if rest.summary is None else rest.summary.text
        self.previous_id = None if rest.summary is None else rest.summary.id
        self.version = version


class SummarizingOperations(KeepOperations):
    """As KeepOperations, with summaries."""

    def __init__(
        self, settings: Settings, summarize: Summarize, keep_turns: int, heading: str, *, automatic: bool
    ) -> None:
        super().__init__(settings)
        self._summarize = summarize
        self._keep_turns = keep_turns
        self._heading = heading
        self._automatic = automatic

    def summarize(self, conversation_id: str) -> Steps[bool]:
        calls = self._settings.calls()
        check_conversation_id(conversation_id)
        return (yield from self._sum_up(calls, conversation_id))

    def _add(self, calls: Calls, conversation_id: str, messages: list[Message]) -> Steps[None]:
        yield from super()._add(calls, conversation_id, messages)
        if self._automatic:
            # The turn is stored by now: nothing that fails from here on may look as if it weren't.
            try:
                yield from self._sum_up(calls, conversation_id)
            except Exception as error:
                # Not its text, which may quote messages.
                _log.warning(
                    "conversation %r was not summed up (%s); the next addition tries again",
                    conversation_id,
                    type(error).__name__,
                    exc_info=None if isinstance(error, StorageError) else error,
                )

    def _read(self, calls: Calls, conversation_id: str, limit: int, upcoming: list[Message]) -> Call[View]:
        def decide(context: Context) -> View | None:
            rest = uncovered(context, _look_back(limit))
            if rest is None:
                return None
            stored = {message.id for message in context.messages}
            new = without_repeated_system((each for each in upcoming if each.id not in stored), context.system)
            counts = self._counts(calls, conversation_id, context, rest, new)
            system = shown_system(newest_system(new, context.system), rest.summary, self._heading)
            if system is not None and rest.summary is not None and system.id != rest.summary.id:
                counts[system.id] = counts.get(system.id, 0) + counts.get(rest.summary.id, 0)
            messages = [*rest.messages, *new]
            view = turn_view(messages, system, limit, self._kind.measure(counts), reserved=self._kind.overhead)
            least = turn_view(messages, system, self._keep_turns, Turns())
            assert view is not None
            assert least is not None
            if len(least.messages) <= len(view.messages):
                return view
            # The turns that no summary covers yet, whatever they take.
            measure = self._kind.measure(counts)
            size = sum(map(measure.of_group, groups_of(least.messages))) + self._kind.overhead
            size += measure.of_system(system) if system is not None else 0
            return View(least.messages, size, limit, measure.unit)

        return read_context(calls, conversation_id, self._first(limit), decide, lambda seen: len(seen.records))

    def _sum_up(self, calls: Calls, conversation_id: str) -> Steps[bool]:
        limit = yield from self._asked_limit(conversation_id)
        found: tuple[_Due | None] = yield self._due(calls, conversation_id, limit)
        due = found[0]
        if due is None:
            return False
        text = yield Ask(self._summarize, due.messages, due.previous)
        if not isinstance(text, str):
            raise TypeError(f"summarize: expected a str, got {type(text).__name__}")
        if not text.strip():
            raise ValueError("summarize: gave an empty summary")
        return (yield from self._store(calls, conversation_id, summary_row(text, due.position, due.message_id), due))

    def _store(self, calls: Calls, conversation_id: str, row: Message, due: _Due) -> Steps[bool]:
        """By compare-and-set: where the conversation grew meanwhile the summary still holds, where another worker's
        summary, a clearing or a deletion came first it doesn't."""
        deadline = time.monotonic() + self._settings.retry_seconds
        version = due.version
        while True:
            try:
                yield extend_context(calls, conversation_id, [row], self._counted([row]), expected_version=version)
                return True
            except ConcurrentChangeError:
                if time.monotonic() > deadline:
                    raise
            yield Pause(random.uniform(0, 0.02))  # noqa: S311 (spreads writers, keeps no secret)
            now: tuple[int] | tuple[None] = yield self._still_holds(calls, conversation_id, due)
            if now[0] is None:
                return False
            version = now[0]

    def _due(self, calls: Calls, conversation_id: str, limit: int) -> Call[tuple[_Due | None]]:
        def decide(context: Context) -> tuple[_Due | None] | None:
            rest = uncovered(context, _look_back(limit))
            if rest is None:
                return None
            counts = self._counts(calls, conversation_id, context, rest, [])
            measure = self._kind.measure(counts)
            size = sum(map(measure.of_group, groups_of(rest.messages))) + self._kind.overhead
            size += sum(measure.of_system(each) for each in (context.system, rest.summary) if each is not None)
            count = evictable(rest, self._keep_turns) if size > limit else 0
            due = _Due(rest, count, context.version) if count else None
            return (due if due is not None and due.messages else None,)

        return read_context(calls, conversation_id, self._first(limit), decide, lambda seen: len(seen.records))

    def _still_holds(self, calls: Calls, conversation_id: str, due: _Due) -> Call[tuple[int] | tuple[None]]:
        def decide(context: Context) -> tuple[int] | tuple[None] | None:
            rest = uncovered(context, 2 * len(due.covered) + LEAST_LOOK_BACK)
            if rest is None:
                return None
            same = (None if rest.summary is None else rest.summary.id) == due.previous_id
            if same and due.covered <= {message.id for message in rest.messages}:
                return (context.version,)
            return (None,)

        return read_context(calls, conversation_id, len(due.covered) + 100, decide, lambda seen: len(seen.records))

    def _first(self, limit: int) -> int:
        return self._kind.first(limit) + 8

    def _counts(
        self, calls: Calls, conversation_id: str, context: Context, rest: Uncovered, new: Iterable[Message]
    ) -> dict[str, int]:
        key = self._kind.estimator_key
        if not key:
            return {}
        counts, fresh = context.count(key, self._kind.count)
        store_counts(calls, conversation_id, key, fresh)
        counts.update((message.id, self._kind.count(message)) for message in new)
        return counts


def _look_back(limit: int) -> int:
    return max(LEAST_LOOK_BACK, 10 * limit)


class _Summarizing(MemoryOver[R]):
    def __init__(
        self,
        repository: R,
        summarize: Summarize,
        *,
        max_messages: Limit | None = None,
        max_tokens: Limit | None = None,
        max_turns: Limit | None = None,
        estimator: TokenCountEstimator | None = None,
        keep_turns: int = 2,
        heading: str = "Summary of the conversation so far:",
        automatic: bool = True,
        on_overflow: OnOverflow = "keep",
    ) -> None:
        if not callable(summarize):
            raise TypeError(f"summarize: expected a function, got {type(summarize).__name__}")
        if type(heading) is not str:
            raise TypeError(f"heading: expected str, got {type(heading).__name__}")
        kind, limit = _trigger(max_messages, max_tokens, max_turns, estimator)
        self.keep_turns = check_limit(keep_turns, "keep_turns")
        self._prepare(repository, kind, limit, "turn", False, "keep", on_overflow)
        require(repository, "conditional_writes", type(self).__name__)
        self._operations: SummarizingOperations = SummarizingOperations(
            self._settings, summarize, self.keep_turns, heading, automatic=automatic
        )


def _trigger(
    max_messages: Limit | None, max_tokens: Limit | None, max_turns: Limit | None, estimator: TokenCountEstimator | None
) -> tuple[Kind, Limit]:
    given = [limit for limit in (max_messages, max_tokens, max_turns) if limit is not None]
    if len(given) != 1:
        raise ValueError(f"give exactly one of max_messages, max_tokens and max_turns, not {len(given)}")
    if estimator is not None and max_tokens is None:
        raise ValueError("estimator: only max_tokens counts tokens")
    if max_tokens is not None:
        return TokenKind(HeuristicTokenCountEstimator() if estimator is None else estimator), given[0]
    return (MessageKind() if max_messages is not None else TurnKind()), given[0]


class SummarizingChatMemory(_Summarizing[ChatMemoryRepository], ChatMemory):
    """A window whose older part is summed up: the model sees the system message with the summary in it, then what the
    summary doesn't cover, as a valid prompt.

    `summarize(messages, previous_summary) -> str` is your function, in the async form perhaps a coroutine function. It
    is called by `add` where the uncovered part of the conversation has grown beyond the limit, with everything but the
    last `keep_turns` turns, and the summary so far or None. No transaction is open and nothing is locked meanwhile.
    Where it fails, the turn is stored all the same, a warning is logged on "chatkeep.memory", and the next `add` tries
    again; until then the view is the window of the limit, with the summary so far.

    Exactly one of `max_messages`, `max_tokens` (with an `estimator`) and `max_turns`; a number of 1 or more or a
    function of the conversation id. The last `keep_turns` turns are always shown verbatim. `heading` stands before the
    summary.
    `automatic=False`: `add` sums nothing up, and you call `summarize` when it suits you, say in a background task.

    A summary is a message of role "chatkeep.summary" in the log, with the position it covers in its metadata; no window
    shows it as a message. It is stored by compare-and-set: of two workers one wins, and a conversation that was cleared
    meanwhile gets none. It is looked for in the newest 1,000 messages or ten times the limit, and starts there in a
    log that is longer. Needs the capability `conditional_writes`.
    """

    _form = ChatMemoryRepository
    _operations: SummarizingOperations

    def summarize(self, conversation_id: str) -> bool:
        """Sum up now, where it is due; whether a new summary was stored. Unlike `add`, it raises what goes wrong."""
        return self._run(self._operations.summarize(conversation_id))


class AsyncSummarizingChatMemory(_Summarizing[AsyncChatMemoryRepository], AsyncChatMemory):
    __doc__ = SummarizingChatMemory.__doc__
    _form = AsyncChatMemoryRepository
    _operations: SummarizingOperations

    async def summarize(self, conversation_id: str) -> bool:
        return await self._run(self._operations.summarize(conversation_id))

    summarize.__doc__ = SummarizingChatMemory.summarize.__doc__
