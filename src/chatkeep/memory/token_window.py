"""TokenWindowChatMemory: the newest messages, up to a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.memory.construction import BoundaryName, Eviction, MemoryOver, OnOverflow, R
from chatkeep.memory.estimators import HeuristicTokenCountEstimator
from chatkeep.memory.limits import Limit
from chatkeep.memory.memory import AsyncChatMemory, ChatMemory
from chatkeep.memory.rules import SPARE, Kind
from chatkeep.memory.tokens import TokenCountEstimator, check_estimator, checked_count, estimator_key
from chatkeep.memory.window import Measure, Tokens
from chatkeep.message import Message
from chatkeep.repository import ChatMemoryRepository

TOKENS_PER_MESSAGE = 100
"""The first block is as large as would fill the budget at so many for a message; its messages tell more."""
MOST_AT_FIRST = 500


class TokenKind(Kind):
    """Counts tokens by an estimator."""

    parameter = "max_tokens"

    def __init__(self, estimator: TokenCountEstimator) -> None:
        self.estimator = check_estimator(estimator)
        self.estimator_key = estimator_key(estimator)
        self.overhead = int(getattr(estimator, "tokens_per_request", 0))

    def measure(self, counts: Mapping[str, int]) -> Measure:
        return Tokens(counts)

    def count(self, message: Message) -> int:
        return checked_count(self.estimator, message)

    def first(self, limit: int) -> int:
        return min(limit // TOKENS_PER_MESSAGE + SPARE, MOST_AT_FIRST)

    def more(self, seen: int, size: int, limit: int) -> int:
        if size >= limit:
            return 2 * seen  # a turn longer than the budget: its user message is what is missing
        wanted = (limit - size) * seen // max(size, 1)
        # A fifth more than the messages so far suggest, and no leap where these were unusually short.
        return min(wanted + wanted // 5 + 8, 8 * seen)


class _TokenWindow(MemoryOver[R]):
    def __init__(
        self,
        repository: R,
        max_tokens: Limit,
        estimator: TokenCountEstimator | None = None,
        *,
        boundary: BoundaryName = "turn",
        always_keep_system_message_first: bool = False,
        eviction: Eviction = "keep",
        on_overflow: OnOverflow = "keep",
    ) -> None:
        kind = TokenKind(HeuristicTokenCountEstimator() if estimator is None else estimator)
        self.estimator = kind.estimator
        self._prepare(
            repository,
            kind,
            max_tokens,
            boundary,
            always_keep_system_message_first,
            eviction,
            on_overflow,
        )


class TokenWindowChatMemory(_TokenWindow[ChatMemoryRepository], ChatMemory):
    """A window over the newest messages of up to `max_tokens` tokens, those of the system message included.

    `max_tokens`: 1 or more, or a function of the conversation id that is asked at each use.
    `estimator`: counts the messages, the heuristic one unless given. Its counts are stored with them, so that each
    message is counted once, and another estimator counts anew.
    A message or a group that doesn't fit is left out whole; no message is cut. The other arguments and errors as in
    MessageWindowChatMemory. Reads backwards in blocks until the budget is full.
    """

    _form = ChatMemoryRepository


class AsyncTokenWindowChatMemory(_TokenWindow[AsyncChatMemoryRepository], AsyncChatMemory):
    __doc__ = TokenWindowChatMemory.__doc__
    _form = AsyncChatMemoryRepository
