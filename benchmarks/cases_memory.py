"""A view of a memory beside a plain read of the newest 20 messages of the same conversation."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cases_operations import LONG_ID
from benchmarks.measure import Row, Scale, compare, timed
from benchmarks.messages import WINDOW
from benchmarks.places import Place
from chatkeep import Message, open_repository
from chatkeep.memory import HeuristicTokenCountEstimator, MessageWindowChatMemory, TokenWindowChatMemory

WINDOW_REACH = 1.3
TOKENS_REACH = 2.0
BUDGET = 4_000


class CountingEstimator(HeuristicTokenCountEstimator):
    """Tells how many messages were counted."""

    counted = 0

    def count_message(self, message: Message) -> int:
        self.counted += 1
        return super().count_message(message)


def views(place: Place, scale: Scale) -> Iterator[Row]:
    """The counts are stored by the first view; from then on nothing is counted."""
    with open_repository(place.url) as repository:
        window = MessageWindowChatMemory(repository, WINDOW)
        estimator = CountingEstimator()
        tokens = TokenWindowChatMemory(repository, BUDGET, estimator)
        tokens.get(LONG_ID)
        counted = estimator.counted

        def read() -> list[Message]:
            return repository.find_by_conversation_id(LONG_ID, limit=WINDOW)

        yield compare(
            f"view of {WINDOW} messages over {scale.long:,}",
            (f"newest {WINDOW}", timed(read)),
            ("view", timed(lambda: window.get(LONG_ID))),
            scale.seconds,
            WINDOW_REACH,
        )
        yield compare(
            f"view of {BUDGET:,} tokens over {scale.long:,}",
            (f"newest {WINDOW}", timed(read)),
            (f"view ({len(tokens.get(LONG_ID))} messages)", timed(lambda: tokens.get(LONG_ID))),
            scale.seconds,
            TOKENS_REACH,
        )
        if estimator.counted != counted:
            raise AssertionError(f"{estimator.counted - counted} messages were counted twice")
