"""C23 bounded cost: what an append and a window cost does not depend on the length of the conversation."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from chatkeep import ChatMemoryRepository, Message
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import counted, memory_over, new_id, said, texts

MANY_ROWS = 300_000


def quickest(repository: ChatMemoryRepository, conversation_id: str) -> float:
    """Seconds of an append and a window of ten; the least of several, since a machine has other things to do."""
    took = []
    for _ in range(15):
        began = time.perf_counter()
        repository.append(conversation_id, said(1))
        assert len(texts(repository.find_by_conversation_id(conversation_id, limit=10))) == 10
        took.append(time.perf_counter() - began)
    return min(took)


@needs("bounded_cost")
class TestC23BoundedCost:
    """Counted statements, and the engine's own plans."""

    @needs("statements")
    @pytest.mark.parametrize("size", [1, 2, 50])
    def test_an_append_takes_the_same_statements_at_any_length(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str, size: int
    ) -> None:
        """At 10 and at 2,000 messages, and within the harness's bound, whatever the number of messages of the call."""
        repository.append(conversation_id, said(10))
        short = [counted(harness, lambda: repository.append(conversation_id, said(size))) for _ in range(2)]
        repository.append(conversation_id, said(1990))
        long = [counted(harness, lambda: repository.append(conversation_id, said(size))) for _ in range(2)]
        assert short[1] == long[1]
        assert len(long[1]) <= harness.append_statements, long[1]
        assert len(long[0]) <= harness.append_statements, long[0]
        assert harness.append_statements == 0 or long[1], "the backend logs no statements"

    @needs("statements")
    def test_reads_take_the_same_statements_at_any_length(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A window, a page and an entry of the directory: one statement each."""
        reads: dict[str, Callable[[], object]] = {
            "window": lambda: repository.find_by_conversation_id(conversation_id, limit=20),
            "memory": lambda: memory_over(repository, "MessageWindowChatMemory", 20).get(conversation_id),
            "page": lambda: repository.history(conversation_id, limit=20),
            "entry": lambda: repository.get_conversation(conversation_id),
            "count": lambda: repository.count_messages(conversation_id),
        }
        repository.append(conversation_id, said(30))
        short = {name: counted(harness, read) for name, read in reads.items()}
        repository.append(conversation_id, said(2000))
        long = {name: counted(harness, read) for name, read in reads.items()}
        assert short == long
        for name, sent in long.items():
            assert len(sent) <= (1 if harness.append_statements else 0), (name, sent)

    @needs("statements", "explain", "plan_is_bounded", "fill")
    def test_the_engine_s_plan_reads_what_it_returns(self, harness: Harness) -> None:
        """With 300,000 rows in the table: window, page, count, append and directory go by an index."""
        url = harness.fresh_url()
        try:
            with harness.open("sync", url) as repository:
                long, other = new_id(), new_id()
                repository.append(other, said(5))
                repository.append(long, said(1))
                harness.fill(url, long, MANY_ROWS, MANY_ROWS // 10)
                found = repository.history(long, limit=50)
                calls: dict[str, Callable[[], object]] = {
                    "window": lambda: repository.find_by_conversation_id(long, limit=20),
                    "memory": lambda: memory_over(repository, "MessageWindowChatMemory", 20).get(long),
                    "tokens": lambda: memory_over(repository, "TokenWindowChatMemory", 4000).get(long),
                    "page": lambda: repository.history(long, after=found.next_cursor, limit=20),
                    "page backwards": lambda: repository.history(long, before=found.next_cursor, limit=20),
                    "append": lambda: repository.append(long, said(1)),
                    "entry": lambda: repository.get_conversation(long),
                    "directory": lambda: repository.list_conversations(limit=5),
                    "last changed": lambda: repository.list_conversations(limit=5, order="updated"),
                    "delete some": lambda: repository.delete_messages(long, [found.items[0].message.id]),
                }
                plans = {
                    f"{name}: {statement}": harness.explain(url, statement)
                    for name, call in calls.items()
                    for statement in counted(harness, call)
                }
            assert len(plans) >= len(calls)
            unbounded = {statement: plan for statement, plan in plans.items() if not harness.plan_is_bounded(plan)}
            assert not unbounded, "\n\n".join(f"{statement}\n{plan}" for statement, plan in unbounded.items())
        finally:
            harness.drop(url)

    @needs("fill")
    def test_a_long_conversation_is_as_quick_as_a_short_one(
        self, harness: Harness, fresh_url: Callable[[], str]
    ) -> None:
        """A window and an append at 100,000 messages take about the time they take at 20: no read of the whole."""
        url = fresh_url()
        with harness.open("sync", url) as repository:
            took: dict[str, float] = {}
            for name, size in (("short", 20), ("long", 100_000)):
                repository.append(name, said(1))
                harness.fill(url, name, size)
                took[name] = quickest(repository, name)
        # Reading the whole takes hundreds of times as long, of which 3 ms are a small part; a busy machine needs them.
        assert took["long"] < 4 * took["short"] + 0.003, took

    def test_large_messages_of_others_cost_nothing(self, harness: Harness, fresh_url: Callable[[], str]) -> None:
        """A window and an append take about the time they took before others stored messages of megabytes."""
        with harness.open("sync", fresh_url()) as repository:
            large = min(8 * 1024 * 1024, repository.capabilities.max_message_bytes // 2)
            repository.append("small", said(20))
            before = quickest(repository, "small")
            for number in range(8):
                repository.append(f"large-{number}", Message.user("x" * large))
                repository.append(f"between-{number}", said(50))
            after = quickest(repository, "small")
        assert after < 4 * before + 0.003, (before, after)
