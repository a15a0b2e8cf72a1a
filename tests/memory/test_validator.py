"""The judge refuses what providers refuse: without this, the property test would prove nothing."""

import pytest

from chatkeep import Message, Text, Thinking, ToolCall, ToolResult
from chatkeep.conformance.prompts import problems

S = Message.system("S")
U = Message.user("u")
A = Message.assistant("a")
C = Message.assistant(tool_calls=[ToolCall("1", "f")])
C2 = Message.assistant(tool_calls=[ToolCall("1", "f"), ToolCall("2", "f")])
T1 = Message.tool("r", call_id="1")
T2 = Message.tool("r", call_id="2")
BOTH = Message("user", (ToolResult("1", "r"), Text("and this")))

VALID = {
    "nothing": [],
    "system alone": [S],
    "one question": [U],
    "two questions": [S, U, U],
    "a turn": [S, U, A, U],
    "a call": [U, C, T1, A],
    "parallel calls, out of order": [U, C2, T2, T1, A, U],
    "results in one message": [U, C2, Message("user", (ToolResult("2"), ToolResult("1"))), A],
    "an answer with a question": [U, C, BOTH, A],
    "thinking before text": [U, Message.assistant([Thinking("hm"), Text("a")])],
    "a built-in tool": [U, Message.assistant([ToolCall("9", "f"), ToolResult("9")]), U],
}
INVALID = {
    "assistant first": [A, U],
    "a result first": [T1, U],
    "system in the middle": [U, S, A],
    "two system messages": [S, S, U],
    "a call without its result": [U, C, A],
    "a call without its result, then a question": [U, C, U],
    "a call at the end": [U, C],
    "one of two results": [U, C2, T1, A],
    "a result too many": [U, C, T1, T2, A],
    "a result twice": [U, C, T1, T1, A],
    "a result without a call": [U, A, T1],
    "a result behind something else": [U, C, A, T1],
    "a result behind a question": [U, C, U, T1],
    "a question between two results": [U, C2, BOTH, T2],
    "results behind text": [U, C, Message("user", (Text("x"), ToolResult("1")))],
    "an empty question": [Message.user("")],
    "a question of white space": [U, Message.user(" \n")],
    "an empty answer": [U, Message.assistant("")],
    "a message without parts": [U, Message("assistant", ())],
    "an empty system message": [Message.system(""), U],
    "thinking alone": [U, Message.assistant([Thinking("hm")])],
    "thinking at the end": [U, Message.assistant([Text("a"), Thinking("hm")])],
    "a user who calls": [Message("user", (ToolCall("1", "f"),)), T1],
    "results of the assistant": [U, Message("assistant", (Text("x"), ToolResult("7")))],
    "a call id in two messages": [U, C, T1, C, T1],
}


@pytest.mark.parametrize("name", VALID)
def test_it_accepts(name: str) -> None:
    assert problems(VALID[name]) == []


@pytest.mark.parametrize("name", INVALID)
def test_it_refuses(name: str) -> None:
    assert problems(INVALID[name])


def test_calls_at_the_very_end_may_be_open_when_asked_so() -> None:
    assert problems([U, C], open_end=True) == []
    assert problems([U, C2, T1], open_end=True) == []
    assert problems([U, C2, T1, U], open_end=True)
    assert problems([U, C, A], open_end=True)
