"""C5 a window is a valid prompt, whatever the log holds and for every limit, through the engine's own reads."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatkeep import ChatMemoryRepository, Message, Text, ToolCall, ToolResult
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.histories import histories
from chatkeep.conformance.prompts import problems
from chatkeep.conformance.support import memory_over, new_id, outlive, said, texts
from chatkeep.memory.window import Messages, Turns, newest_system, turn_view

CAREFUL = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def exchange(number: int, calls: int = 1, answered: int | None = None) -> list[Message]:
    """A question, its calls, and their results in the other order."""
    asked = [ToolCall(f"call-{number}-{n}", "look") for n in range(calls)]
    results = [
        Message.tool(f"found {number}", call_id=call.id) for call in asked[: calls if answered is None else answered]
    ]
    return [Message.user(f"question {number}"), Message.assistant(tool_calls=asked), *results[::-1]]


def everything_that_goes_wrong() -> list[Message]:
    """Late, missing, stray and doubled results, several system messages, a crash in the middle of a turn."""
    late = Message.tool("late", call_id="call-3-1")
    return [
        Message.assistant("Hello, what can I do?"),
        Message.system("Be brief."),
        *exchange(1, 3),
        Message.assistant("answer 1"),
        *exchange(2, 2, answered=1),
        *exchange(3, 2, answered=1),
        Message.system("Be kind."),
        Message.user("question 4"),
        late,
        Message.assistant("answer 4"),
        Message.tool("stray", call_id="never asked"),
        Message.assistant(""),
        *exchange(5),
        Message.tool("a second one", call_id="call-5-0"),
        Message("user", (ToolResult("call-5-0", "and a third"), Text("question 6"))),
        Message.assistant("answer 6"),
        *exchange(7, 2, answered=1),
    ]


class TestC05ValidPrompt:
    """Judged by the providers' rules (conformance/prompts.py), and compared to the rule over the whole log."""

    @pytest.mark.parametrize("name", ["MessageWindowChatMemory", "TurnWindowChatMemory", "TokenWindowChatMemory"])
    def test_a_view_is_valid_for_every_limit(
        self, repository: ChatMemoryRepository, conversation_id: str, name: str
    ) -> None:
        """Over a log of everything that goes wrong, with and without a new question."""
        log = everything_that_goes_wrong()
        memory_over(repository, name, 10).add(conversation_id, *log)
        question = Message.user("and now?")
        for limit in [*range(1, 31), 100, 1000]:
            memory = memory_over(repository, name, limit)
            view = memory.get(conversation_id)
            assert problems(view, open_end=True) == [], (limit, view)
            assert {"Be kind.", "question 7"} <= set(texts(view)), limit
            asked = memory.get(conversation_id, upcoming=[question])
            assert problems(asked) == [], (limit, asked)
            assert asked[0].text == "Be kind."
            assert asked[-1] == question
        assert repository.find_by_conversation_id(conversation_id) == log

    def test_a_view_through_the_engine_is_that_of_the_whole_log(self, opened: Opened) -> None:
        """Random logs and limits: what was not read would not have changed the view."""
        repository = opened()

        @CAREFUL
        @given(log=histories(), limit=st.integers(1, 12))
        def check(log: list[Message], limit: int) -> None:
            conversation_id = new_id()
            memory_over(repository, "MessageWindowChatMemory").add(conversation_id, *log)
            system = newest_system(log, None)
            for name, measure in (("MessageWindowChatMemory", Messages()), ("TurnWindowChatMemory", Turns())):
                expected = turn_view(log, system, limit, measure)
                assert expected is not None
                assert memory_over(repository, name, limit).get(conversation_id) == expected.messages

        check()

    @pytest.mark.parametrize("rounds", [3, 60])
    def test_a_turn_longer_than_the_window_keeps_its_question(
        self, repository: ChatMemoryRepository, conversation_id: str, rounds: int
    ) -> None:
        """However far back the question is: [question] and the newest exchanges that fit."""
        memory = memory_over(repository, "MessageWindowChatMemory", 6)
        memory.add(conversation_id, *said(4), Message.user("the question"))
        for number in range(rounds):
            memory.add(conversation_id, *exchange(number)[1:])
        view = memory.get(conversation_id)
        assert problems(view) == []
        assert texts(view)[0] == "the question"
        assert [call.id for message in view for call in message.tool_calls] == [
            f"call-{number}-0" for number in (rounds - 2, rounds - 1)
        ]

    @needs("ttl")
    def test_a_view_stays_valid_when_the_oldest_part_expires(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Half of an exchange expired: its other half goes too. An expired system message brings no older one back."""
        question, call, *results = exchange(1, 2)
        memory = memory_over(repository, "MessageWindowChatMemory", 20)
        repository.append(conversation_id, [Message.system("old")])
        short = [Message.system("new"), question, call, results[0]]
        repository.append(conversation_id, short, ttl=harness.shortest_ttl)
        repository.append(conversation_id, [results[1], *said(2, "later")])
        outlive(harness.shortest_ttl)
        assert texts(memory.get(conversation_id)) == ["later 00000", "later 00001"]

    def test_the_system_message_is_found_at_any_distance(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """The newest one, in front, and one place of the limit."""
        memory = memory_over(repository, "MessageWindowChatMemory", 5)
        memory.add(conversation_id, Message.system("first"), *said(2))
        memory.add(conversation_id, Message("developer", (Text("second"),)), *said(200))
        assert texts(memory.get(conversation_id)) == ["second", *texts(said(200)[-4:])]
        # The same text again is ignored, another one replaces it, also the first under its old id.
        first = repository.find_by_conversation_id(conversation_id)[0]
        before = repository.count_messages(conversation_id)
        memory.add(conversation_id, Message.system("second"))
        assert repository.count_messages(conversation_id) == before
        memory.add(conversation_id, Message.system("third"))
        assert memory.get(conversation_id)[0].text == "third"
        if repository.capabilities.context:
            memory.add(conversation_id, first)
            assert memory.get(conversation_id)[0] == first

    @needs("context")
    def test_a_deleted_system_message_brings_no_older_one_back(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """What was replaced stays replaced."""
        memory = memory_over(repository, "MessageWindowChatMemory", 5)
        newest = Message.system("new")
        memory.add(conversation_id, Message.system("old"), Message.user("hello"), newest)
        repository.delete_messages(conversation_id, [newest.id])
        assert texts(memory.get(conversation_id)) == ["hello"]

    def test_an_unknown_conversation_has_an_empty_view(self, repository: ChatMemoryRepository) -> None:
        """And looking at it makes nothing."""
        unknown = new_id()
        memory = memory_over(repository, "MessageWindowChatMemory", 5)
        assert memory.get(unknown) == []
        assert memory.get(unknown, upcoming=[Message.assistant("hello")]) == []
        assert repository.get_conversation(unknown) is None
