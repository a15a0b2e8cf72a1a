"""C6 token budgets: each message is counted once and the count stored; a budget too small gives the least view."""

from __future__ import annotations

from collections import Counter

import pytest

from chatkeep import ChatMemoryRepository, Message, Text, ToolCall, WindowOverflowError
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.prompts import problems
from chatkeep.conformance.support import counted, memory_over, said, texts


class Estimator:
    """Ten tokens a message and one for each character; remembers what it counted."""

    tokens_per_request = 3

    def __init__(self, version: str = "1") -> None:
        self.name = "suite"
        self.version = version
        self.counted: Counter[str] = Counter()

    def count_message(self, message: Message) -> int:
        self.counted[message.id] += 1
        return 10 + len(message.text)


class TestC06TokenBudgets:
    """Budgets, counts, and an estimator that tells how often it was asked."""

    @needs("token_counts")
    def test_each_message_is_counted_once(self, opened: Opened, conversation_id: str) -> None:
        """By additions, views and other handles together; also what came past the memory, when it is first read."""
        repository, estimator = opened(), Estimator()
        memory = memory_over(repository, "TokenWindowChatMemory", 10_000, estimator)
        messages = [Message.system("S"), *said(30)]
        memory.add(conversation_id, *messages[:20])
        repository.append(conversation_id, messages[20:])
        for _ in range(3):
            assert memory.get(conversation_id) == messages
        again = memory_over(opened(), "TokenWindowChatMemory", 10_000, estimator)
        assert again.get(conversation_id) == messages
        assert estimator.counted == Counter(message.id for message in messages)
        counts = [entry.token_count for entry in repository.history(conversation_id).items]
        assert counts == [10 + len(message.text) for message in messages]

    @needs("token_counts")
    def test_another_estimator_counts_anew(self, opened: Opened, conversation_id: str) -> None:
        """Noticed by name and version, each time once."""
        messages = said(3)
        first, second = Estimator("1"), Estimator("2")
        memory_over(opened(), "TokenWindowChatMemory", 1000, first).add(conversation_id, *messages)
        for _ in range(2):
            memory_over(opened(), "TokenWindowChatMemory", 1000, second).get(conversation_id)
        assert first.counted == second.counted == Counter(message.id for message in messages)

    def test_the_view_fits_the_budget_or_is_the_least(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """For every budget from 1 up: the longest suffix that fits; below that system, question and last group."""
        call = Message.assistant(tool_calls=[ToolCall("1", "look")])
        messages = [
            Message.system("S"),
            *said(6),
            Message.user("q"),
            Message.assistant("hm"),
            call,
            Message.tool("found", call_id="1"),
        ]
        estimator = Estimator()
        sizes = [estimator.count_message(message) for message in messages]
        memory_over(repository, "TokenWindowChatMemory", 1, estimator).add(conversation_id, *messages)
        least = 3 + sizes[0] + sizes[7] + sizes[9] + sizes[10]
        for budget in [*range(1, sum(sizes) + 10)]:
            view = memory_over(repository, "TokenWindowChatMemory", budget, estimator).get(conversation_id)
            assert problems(view) == []
            size = 3 + sum(estimator.count_message(message) for message in view)
            assert size <= max(budget, least), budget
            if budget <= least:
                assert view == [messages[0], messages[7], *messages[9:]]
            strict = memory_over(repository, "TokenWindowChatMemory", budget, estimator, on_overflow="error")
            if budget < least:
                with pytest.raises(WindowOverflowError) as caught:
                    strict.get(conversation_id)
                assert (caught.value.size, caught.value.limit, caught.value.unit) == (least, budget, "tokens")
            else:
                assert strict.get(conversation_id) == view
        assert view == messages

    def test_an_addition_never_fails_for_size(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Only `get` with `on_overflow="error"` does."""
        memory = memory_over(repository, "TokenWindowChatMemory", 1, Estimator(), on_overflow="error")
        memory.add(conversation_id, Message.user("far too long for it"))
        with pytest.raises(WindowOverflowError, match="32 tokens, the limit is 1"):
            memory.get(conversation_id)
        assert repository.count_messages(conversation_id) == 1

    @needs("bounded_cost", "statements", "fill")
    def test_a_budget_is_filled_backwards_in_blocks(
        self, harness: Harness, repository: ChatMemoryRepository, namespace: str, conversation_id: str
    ) -> None:
        """In a long conversation a few reads, of little more than the budget holds."""
        repository.append(conversation_id, Message.user("the first"))
        harness.fill(namespace, conversation_id, 5000)
        newest = [Message("user", (Text("x" * 90),)) for _ in range(100)]
        repository.append(conversation_id, newest)
        estimator = Estimator()
        memory = memory_over(repository, "TokenWindowChatMemory", 4000, estimator)
        assert memory.get(conversation_id) == newest[-39:]
        assert len(estimator.counted) <= 80, "it read much more than the budget holds"
        reads = counted(harness, lambda: texts(memory.get(conversation_id)))
        assert len(reads) <= (3 if harness.append_statements else 0), reads
