"""C5, C6: the turn rule over random histories, judged by a strict validator and by a slower reading of the rule."""

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatkeep import Message
from chatkeep.conformance.histories import histories
from chatkeep.conformance.prompts import problems
from chatkeep.memory.groups import groups_of, has_content
from chatkeep.memory.window import Measure, Messages, Tokens, Turns, View, newest_system, turn_view

CASES = int(os.environ.get("CHATKEEP_PROPERTY_CASES", "2000"))
SLOW = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
LIMITS = st.one_of(st.integers(1, 8), st.integers(1, 60))


def measure_of(unit: str, messages: list[Message]) -> Measure:
    if unit == "tokens":
        return Tokens({message.id: len(message.parts) + sum(map(len, message.text.split())) for message in messages})
    return Messages() if unit == "messages" else Turns()


def view_of(messages: list[Message], limit: int, unit: str) -> View:
    view = turn_view(messages, newest_system(messages, None), limit, measure_of(unit, messages))
    assert view is not None
    return view


def asks(message: Message) -> bool:
    """A user message that says something."""
    said = [part for part in message.parts if type(part).__name__ not in ("ToolResult", "ToolCall")]
    return message.role == "user" and has_content(said)


UNITS = st.sampled_from(["messages", "tokens", "turns"])


@SLOW
@given(unit=UNITS, messages=histories(), limit=LIMITS)
def test_a_view_is_a_valid_prompt(unit: str, messages: list[Message], limit: int) -> None:
    view = view_of(messages, limit, unit)
    assert problems(view.messages, open_end=True) == []


@SLOW
@given(messages=histories(reuse_ids=True), limit=LIMITS)
def test_a_view_is_a_valid_prompt_where_call_ids_are_used_again(messages: list[Message], limit: int) -> None:
    view = view_of(messages, limit, "messages")
    assert problems(view.messages, open_end=True, unique_ids=False) == []


@SLOW
@given(unit=UNITS, messages=histories(), limit=LIMITS)
def test_before_a_new_question_nothing_is_open(unit: str, messages: list[Message], limit: int) -> None:
    question = Message.user("the newest question")
    view = view_of([*messages, question], limit, unit)
    assert problems(view.messages) == []
    assert view.messages[-1] == question


@SLOW
@given(unit=UNITS, messages=histories(), limit=LIMITS)
def test_the_newest_question_is_never_lost(unit: str, messages: list[Message], limit: int) -> None:
    """Nor the system message; a user message that also brings results needs one before it that can lead."""
    view = view_of(messages, limit, unit)
    shown = [message.id for message in view.messages]
    questions = [message for message in messages if asks(message)]
    if any(not message.tool_results for message in questions):
        assert questions[-1].id in shown
    else:
        assert len(shown) <= 1
    system = newest_system(messages, None)
    if system is not None and has_content(system.parts):
        assert view.messages[0] == system


@SLOW
@given(unit=UNITS, messages=histories(), limit=LIMITS)
def test_a_view_is_the_longest_that_fits(unit: str, messages: list[Message], limit: int) -> None:
    """Tried from every user message that can lead."""
    measure = measure_of(unit, messages)
    system = newest_system(messages, None)
    front = [system] if system is not None and has_content(system.parts) else []
    taken = sum(map(measure.of_system, front))
    groups = groups_of(messages)
    fitting = [
        groups[start:]
        for start, group in enumerate(groups)
        if group.leads and taken + sum(map(measure.of_group, groups[start:])) <= limit
    ]
    view = view_of(messages, limit, unit)
    if fitting:
        assert view.messages == front + [message for group in fitting[0] for message in group.messages]
        assert view.size <= limit
    elif any(group.leads for group in groups):
        assert groups[-1].messages[-1] == view.messages[-1]
    else:
        assert view.messages == front


@SLOW
@given(unit=UNITS, messages=histories(), limit=LIMITS, read=st.integers(0, 30))
def test_the_newest_part_of_a_log_decides_as_the_whole(
    unit: str, messages: list[Message], limit: int, read: int
) -> None:
    """Or says that it can't."""
    part = messages[max(0, len(messages) - read) :]
    system = newest_system(messages, None)
    measure = measure_of(unit, messages)
    partial = turn_view(part, system, limit, measure, whole=len(part) == len(messages))
    assert partial is None or partial == turn_view(messages, system, limit, measure)
    assert partial is not None or len(part) < len(messages)


@SLOW
@given(messages=histories())
def test_a_view_of_a_view_is_the_same(messages: list[Message]) -> None:
    """So that with eviction "delete" it stays what it is."""
    view = view_of(messages, 7, "messages")
    kept = {message.id for message in [*view.messages, *view.answering]}
    again = view_of([message for message in messages if message.id in kept], 7, "messages")
    assert again.messages == view.messages
