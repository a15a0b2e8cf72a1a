"""The turn rule, case by case: each sentence of it with the smallest log that shows it."""

from __future__ import annotations

import pytest

from chatkeep import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from chatkeep.memory.window import Messages, Turns, newest_system, turn_view


def log(*words: str) -> list[Message]:
    """`S:x` system, `U:x` user, `A:x` assistant, `C:1,2` calls, `T:1=x` a result, `R:1=x` results of a user, `B:1=x`
    results and the text "both" in one user message."""
    return [_message(*word.split(":", 1)) for word in words]


def _message(kind: str, content: str) -> Message:
    if kind == "C":
        return Message.assistant(tool_calls=[ToolCall(each, "f") for each in content.split(",")])
    if kind in "TRB":
        results = [ToolResult(*each.split("=")) for each in content.split(",")]
        said = [Text("both")] if kind == "B" else []
        return Message("tool" if kind == "T" else "user", (*results, *said))
    return {"S": Message.system, "U": Message.user, "A": Message.assistant}[kind](content)


def shown(messages: list[Message]) -> str:
    words = []
    for message in messages:
        kind = {"system": "S", "user": "U", "assistant": "A", "tool": "T"}[message.role]
        if message.tool_calls:
            words.append("C:" + ",".join(call.id for call in message.tool_calls))
        elif message.tool_results:
            kind = "B" if message.text else "R" if message.role == "user" else "T"
            words.append(f"{kind}:" + ",".join(f"{each.call_id}={each.text}" for each in message.tool_results))
        else:
            words.append(f"{kind}:{message.text}")
    return " ".join(words)


def view(words: str, limit: int, measure: Messages | Turns | None = None) -> str:
    messages = log(*words.split())
    found = turn_view(messages, newest_system(messages, None), limit, measure or Messages())
    assert found is not None
    return shown(found.messages)


CASES = {
    "all of it fits": ("S:s U:1 A:1 U:2", 4, "S:s U:1 A:1 U:2"),
    "the longest suffix that starts at a user": ("U:1 A:1 U:2 A:2 U:3", 4, "U:2 A:2 U:3"),
    "system takes a place": ("S:s U:1 A:1 U:2", 3, "S:s U:2"),
    "the newest system message counts, in front": ("S:a U:1 S:b A:1", 9, "S:b U:1 A:1"),
    "no user message": ("S:s A:1 C:1 T:1=x", 9, "S:s"),
    "the newest turn alone doesn't fit": ("U:1 A:1 U:2 A:a A:b A:c", 3, "U:2 A:b A:c"),
    "at least the last group, beyond the limit": ("U:1 C:1,2 T:1=x T:2=y", 1, "U:1 C:1,2 T:1=x T:2=y"),
    "nothing in between is skipped to fit another": ("U:1 A:a C:1 T:1=x A:b", 3, "U:1 A:b"),
    "a call that was never answered": ("U:1 C:1 U:2 A:2", 9, "U:1 U:2 A:2"),
    "one of two results is missing": ("U:1 C:1,2 T:1=x A:1", 9, "U:1 A:1"),
    "still being answered": ("U:1 C:1,2 T:1=x", 9, "U:1 C:1,2 T:1=x"),
    "a system message does not end the answering": ("U:1 C:1 S:s", 9, "S:s U:1 C:1"),
    "nor does a stray result": ("U:1 C:1 T:9=x", 9, "U:1 C:1"),
    "an answer does": ("U:1 C:1 A:1", 9, "U:1 A:1"),
    "and so does a question": ("U:1 C:1 U:2", 9, "U:1 U:2"),
    "a result that comes late stands behind its call": ("U:1 C:1 U:2 T:1=x A:2", 9, "U:1 C:1 T:1=x U:2 A:2"),
    "results keep the order of their arrival": ("U:1 C:1,2 T:2=y T:1=x", 9, "U:1 C:1,2 T:2=y T:1=x"),
    "of two results the last counts": ("U:1 C:1 T:1=x T:1=y A:1", 9, "U:1 C:1 T:1=y A:1"),
    "the nearest unanswered call": ("U:1 C:1 T:1=x C:1 T:1=y", 9, "U:1 C:1 T:1=x C:1 T:1=y"),
    "a call that is used again": ("U:1 C:1 C:1 T:1=x A:1", 9, "U:1 C:1 T:1=x A:1"),
    "and then the one before": ("U:1 C:1 C:1 T:1=x T:1=y", 9, "U:1 C:1 T:1=y C:1 T:1=x"),
    "a result without a call": ("U:1 T:9=x A:1", 9, "U:1 A:1"),
    "a result before its call": ("U:1 T:1=x C:1 A:1", 9, "U:1 A:1"),
    "results of a user are a tool message": ("U:1 C:1 R:1=x A:1", 2, "U:1 A:1"),
    "and start no turn": ("U:1 A:a C:1 R:1=x", 3, "U:1 C:1 R:1=x"),
    "an answer with a question stays one message": ("U:1 C:1 B:1=x A:2", 9, "U:1 C:1 B:1=x A:2"),
    "and doesn't lead": ("U:1 C:1 B:1=x A:2", 3, "U:1 C:1 B:1=x A:2"),
    "nor is it lost with its calls": ("U:1 A:a C:1 B:1=x A:b A:c", 5, "U:1 C:1 B:1=x A:b A:c"),
    "its results alone go with the call": ("U:1 C:1 A:a B:1=x A:2", 9, "U:1 C:1 R:1=x A:a U:both A:2"),
    "a message takes its place in two": ("U:1 C:1 A:a B:1=x", 4, "U:1 A:a U:both"),
    "a joined message is never shown without its call": ("U:1 C:1 B:1=x A:a U:2", 1, "U:2"),
    "also where only it would fit": ("U:0 C:1 B:1=x C:2 B:2=y", 4, "U:0 C:2 B:2=y"),
    "one result for two groups": ("U:1 C:1 A:a C:2 T:1=x,2=y", 9, "U:1 C:1 T:1=x A:a C:2 T:2=y"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rule(name: str) -> None:
    words, limit, expected = CASES[name]
    assert view(words, limit) == expected


def test_turns_are_counted_by_their_questions() -> None:
    assert view("S:s U:1 A:1 U:2 A:a A:b U:3", 2, Turns()) == "S:s U:2 A:a A:b U:3"
    assert view("U:1 A:a C:1 B:1=x A:2", 1, Turns()) == "U:1 A:a C:1 B:1=x A:2", "the one begun by B can't lead"
    assert view("U:0 A:0 U:1 A:a C:1 B:1=x", 2, Turns()) == "U:1 A:a C:1 B:1=x"


def test_what_is_being_answered_is_known_without_a_question() -> None:
    messages = log("C:1,2", "T:1=x")
    found = turn_view(messages, None, 9, Messages())
    assert found is not None
    assert found.messages == []
    assert found.answering == messages


NOTHING = {
    "no parts": Message("assistant", ()),
    "an empty text": Message.assistant(""),
    "white space": Message.assistant(" \n"),
    "thinking alone": Message.assistant([Thinking("hm", "signature")]),
    "what could not be read": Message.assistant([Opaque("chatkeep.unreadable", {})]),
    "a tool message without results": Message("tool", (Text("lost"),)),
    "a summary": Message("chatkeep.summary", (Text("so far"),)),
}
SOMETHING = {
    "an image": Message.user([Media("image/png", b"x")]),
    "thinking and text": Message.assistant([Thinking("hm", "signature"), Text("a")]),
    "opaque": Message.assistant([Opaque("acme.search")]),
    "another role": Message("critic", (Text("no"),)),
    "a built-in tool": Message.assistant([ToolCall("1", "search"), ToolResult("1", "found")]),
}


@pytest.mark.parametrize("name", NOTHING)
def test_messages_without_content_are_left_out(name: str) -> None:
    question = Message.user("q")
    found = turn_view([question, NOTHING[name]], None, 1, Messages())
    assert found is not None
    assert found.messages == [question]


@pytest.mark.parametrize("name", SOMETHING)
def test_other_content_is_shown_as_it_is(name: str) -> None:
    question = Message.user("q")
    found = turn_view([question, SOMETHING[name]], None, 2, Messages())
    assert found is not None
    assert found.messages == [question, SOMETHING[name]]


def test_a_system_message_without_content_is_none() -> None:
    messages = [Message.system("S"), Message.user("q"), Message.system("")]
    found = turn_view(messages, newest_system(messages, None), 9, Messages())
    assert found is not None
    assert found.messages == [messages[1]]
