"""Random histories with everything that goes wrong in them: for property tests."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from chatkeep import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

SYSTEMS = ("Be brief.", "Be kind.", "")
TEXTS = (
    "hello",
    "what is it?",
    "a longer text that says a little more than the others do",
    "ümläut 漢字 👩‍👩‍👧",
    " pad ",
)
NOTHING = ("", " ", "\n\t")


@st.composite
def histories(draw: st.DrawFn, *, reuse_ids: bool = False, most: int = 24) -> list[Message]:
    """Logs as crashes, retries, parallel tools and careless programs leave them."""
    messages: list[Message] = []
    asked: list[str] = []

    def call_ids() -> list[str]:
        count = draw(st.integers(1, 3))
        if reuse_ids:
            ids = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=count, max_size=count))
        else:
            ids = [f"call-{len(asked) + number}" for number in range(count)]
        asked.extend(ids)
        return ids

    def results(at_least: int = 1) -> list[Part]:
        known = draw(st.lists(st.sampled_from(asked[-4:] or ["stray"]), min_size=at_least, max_size=3))
        if draw(st.integers(0, 9)) == 0:
            known.append("stray")
        return [ToolResult(call_id, draw(st.sampled_from(["ok", "", "42"]))) for call_id in known]

    def text() -> str:
        return draw(st.sampled_from(TEXTS))

    kinds: dict[str, Callable[[], Message]] = {
        "system": lambda: Message.system(draw(st.sampled_from(SYSTEMS))),
        "developer": lambda: Message("developer", (Text(text()),)),
        "user": lambda: Message.user(text()),
        "user with media": lambda: Message.user([Media("image/png", b"\x89PNG"), Text(draw(st.sampled_from(NOTHING)))]),
        "user says nothing": lambda: Message.user(draw(st.sampled_from(NOTHING))),
        "user says nothing at all": lambda: Message("user", ()),
        "user answers and speaks": lambda: Message("user", (*results(), Text(text()))),
        "user speaks and answers": lambda: Message("user", (Text(text()), *results())),
        "user calls": lambda: Message("user", (Text(text()), ToolCall("odd", "f"))),
        "assistant": lambda: Message.assistant(text()),
        "assistant says nothing": lambda: Message.assistant(draw(st.sampled_from(NOTHING))),
        "thinking alone": lambda: Message.assistant([Thinking("hm", "signature")]),
        "thinking and text": lambda: Message.assistant([Thinking("hm", "signature"), Text(text())]),
        "opaque": lambda: Message.assistant([Opaque("acme.search", {"q": 1})]),
        "calls": lambda: Message.assistant(
            draw(st.sampled_from([None, "", "let me see"])), tool_calls=[ToolCall(each, "f") for each in call_ids()]
        ),
        "built-in": lambda: Message.assistant([ToolCall(each := f"own-{len(messages)}", "search"), ToolResult(each)]),
        "result": lambda: Message("tool", (results()[0],)),
        "results": lambda: Message("tool", tuple(results())),
        "results of a user": lambda: Message("user", tuple(results())),
        "tool without a call": lambda: Message("tool", (Text("lost"),)),
        "summary": lambda: Message("chatkeep.summary", (Text("what was said"),)),
    }
    often = ["user", "assistant", "calls", "result", "result"]
    for kind in draw(st.lists(st.sampled_from([*kinds, *often, *often]), max_size=most)):
        messages.append(kinds[kind]())
        if kind == "calls" and draw(st.booleans()):
            # Usually the answers come, in some order, perhaps not all of them.
            ids = [call.id for call in messages[-1].tool_calls]
            kept = draw(st.lists(st.sampled_from(ids), unique=True, max_size=len(ids)))
            messages.extend(Message.tool("ok", call_id=each) for each in kept)
    return messages
