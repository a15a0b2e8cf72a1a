"""`boundary="message"`: the traces that a reading of LangChain4j gives, and random sequences against a model of it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatkeep import ChatMemoryRepository, Message, ToolCall, open_repository
from chatkeep.memory import ChatMemory, MessageWindowChatMemory, TokenWindowChatMemory
from tests.memory.langchain4j_model import Original

SLOW = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


def U(text: str = "u") -> Message:
    return Message.user(text)


def A(calls: int = 0, text: str = "a") -> Message:
    return Message.assistant(text, tool_calls=[ToolCall(f"call-{n}", "f") for n in range(calls)])


def T(number: int = 0) -> Message:
    return Message.tool("t", call_id=f"call-{number}")


def S(text: str = "S") -> Message:
    return Message.system(text)


def shown(view: list[Message]) -> list[str]:
    """As short notation: the text of system and user messages, A for the assistant's, T for results."""
    return [{"assistant": "A", "tool": "T"}.get(message.role, message.text) for message in view]


@pytest.fixture
def repository() -> Any:
    with open_repository("inprocess:") as opened:
        yield opened


# By rule: the system message moves when it changes; results go with the call before them; what fits nowhere vanishes.
TRACES: dict[str, tuple[int, bool, list[Message], list[list[str]]]] = {
    "a new system message goes to the end": (
        3,
        False,
        [S("S1"), U("U1"), A(), S("S2"), U("U2"), A(), U("U3")],
        [
            ["S1"],
            ["S1", "U1"],
            ["S1", "U1", "A"],
            ["U1", "A", "S2"],
            ["A", "S2", "U2"],
            ["S2", "U2", "A"],
            ["S2", "A", "U3"],
        ],
    ),
    "or to the front": (
        3,
        True,
        [S("S1"), U("U1"), A(), S("S2"), U("U2")],
        [["S1"], ["S1", "U1"], ["S1", "U1", "A"], ["S2", "U1", "A"], ["S2", "A", "U2"]],
    ),
    "and takes a place": (
        3,
        True,
        [U("U1"), A(), U("U2"), S()],
        [["U1"], ["U1", "A"], ["U1", "A", "U2"], ["S", "A", "U2"]],
    ),
    "the window is empty in the middle of a tool loop": (
        2,
        False,
        [U(), A(3), T(0), T(1), T(2), A()],
        [["u"], ["u", "A"], ["A", "T"], [], ["T"], ["T", "A"]],
    ),
    "a system message stops the sweep": (
        3,
        False,
        [U(), A(1), S(), T(0), U("U2")],
        [["u"], ["u", "A"], ["u", "A", "S"], ["A", "S", "T"], ["S", "T", "U2"]],
    ),
    "one place, taken by the system message": (1, False, [S(), U(), A()], [["S"], ["S"], ["S"]]),
    "the question is gone": (
        2,
        False,
        [U(), A(1), T(0), A(1), T(0), A()],
        [["u"], ["u", "A"], ["A", "T"], ["A"], ["A", "T"], ["A"]],
    ),
}


@pytest.mark.parametrize("name", TRACES)
def test_the_traces_of_the_original(repository: ChatMemoryRepository, name: str) -> None:
    limit, first, messages, expected = TRACES[name]
    memory = MessageWindowChatMemory(
        repository, limit, boundary="message", eviction="delete", always_keep_system_message_first=first
    )
    model = Original(limit, always_keep_system_message_first=first)
    for message, view in zip(messages, expected, strict=True):
        memory.add("c", message)
        model.add(message)
        assert shown(model.messages()) == view
        assert shown(memory.get("c")) == view
        assert shown(repository.find_by_conversation_id("c")) == view


class Ten:
    """As many tokens as the text says."""

    name, version, tokens_per_request = "ten", "1", 0

    def count_message(self, message: Message) -> int:
        return int(message.text.strip("SUA") or 1)


def test_the_token_traces_of_the_original(repository: ChatMemoryRepository) -> None:
    memory = TokenWindowChatMemory(repository, 20, Ten(), boundary="message", eviction="delete")
    memory.add("system", S("S30"))
    memory.add("system", U("U5"))
    assert shown(memory.get("system")) == ["S30"], "the system message alone may exceed the limit"
    memory = TokenWindowChatMemory(repository, 25, Ten(), boundary="message", eviction="delete")
    memory.add("large", U("U10"))
    memory.add("large", U("U100"))
    assert memory.get("large") == [], "one message too large takes everything with it"


def test_the_turn_boundary_mends_each_of_them(repository: ChatMemoryRepository) -> None:
    for name, (limit, _, messages, _) in TRACES.items():
        memory = MessageWindowChatMemory(repository, limit)
        for count, message in enumerate(messages, 1):
            memory.add(name, message)
            view = shown(memory.get(name))
            asked = [m.text for m in messages[:count] if m.role == "user"]
            assert not asked or asked[-1] in view, (name, view)


kinds: st.SearchStrategy[Callable[[], Message]] = st.sampled_from(
    [U, U, A, A, lambda: A(1), lambda: A(2), T, T, lambda: T(1), S, lambda: S("S2"), lambda: U("longer")]
)
operations = st.lists(
    st.one_of(
        kinds.map(lambda make: ("add", [make])),
        kinds.map(lambda make: ("add", [make])),
        st.tuples(st.just("add"), st.lists(kinds, max_size=4)),
        st.tuples(st.just("set"), st.lists(kinds, min_size=1, max_size=6)),
        st.just(("clear", [])),
    ),
    max_size=20,
)


def same_as_original(memory: ChatMemory, model: Original, steps: list[tuple[str, list[Callable[[], Message]]]]) -> None:
    for verb, makers in steps:
        messages = [make() for make in makers]
        if verb == "add":
            before = model.messages()
            expected = Original(
                model.limit, model.size, model.overhead, always_keep_system_message_first=model.system_first
            )
            expected.store = model.store.copy()
            for message in messages:
                expected.add(message)
            assert memory.get("c", upcoming=messages) == expected.messages()
            assert memory.get("c") == before
            memory.add("c", *messages)
            for message in messages:
                model.add(message)
        elif verb == "set":
            memory.set("c", messages)
            model.set(messages)
        else:
            memory.clear("c")
            model.clear()
        assert memory.get("c") == model.messages()
        assert memory.repository.find_by_conversation_id("c") == model.store


@SLOW
@given(limit=st.integers(1, 7), first=st.booleans(), steps=operations)
def test_a_message_window_is_the_original_s(limit: int, first: bool, steps: Any) -> None:
    with open_repository("inprocess:") as repository:
        memory = MessageWindowChatMemory(
            repository, limit, boundary="message", eviction="delete", always_keep_system_message_first=first
        )
        same_as_original(memory, Original(limit, always_keep_system_message_first=first), steps)


class Lengths:
    name, version = "lengths", "1"

    def __init__(self, overhead: int) -> None:
        self.tokens_per_request = overhead

    def count_message(self, message: Message) -> int:
        return 1 + len(message.text) + 2 * len(message.tool_calls)


@SLOW
@given(limit=st.integers(1, 30), overhead=st.integers(0, 3), first=st.booleans(), steps=operations)
def test_a_token_window_is_the_original_s(limit: int, overhead: int, first: bool, steps: Any) -> None:
    estimator = Lengths(overhead)
    with open_repository("inprocess:") as repository:
        memory = TokenWindowChatMemory(
            repository,
            limit,
            estimator,
            boundary="message",
            eviction="delete",
            always_keep_system_message_first=first,
        )
        model = Original(limit, estimator.count_message, overhead, always_keep_system_message_first=first)
        same_as_original(memory, model, steps)


@SLOW
@given(limit=st.integers(1, 7), first=st.booleans(), makers=st.lists(kinds, max_size=40), tokens=st.booleans())
def test_kept_logs_are_trimmed_once(limit: int, first: bool, makers: Any, tokens: bool) -> None:
    """`eviction="keep"`: what the original shows of a log that it let grow, read from the end only as far as needed."""
    messages = [make() for make in makers]
    estimator = Lengths(2)
    with open_repository("inprocess:") as repository:
        options: dict[str, Any] = {"boundary": "message", "always_keep_system_message_first": first}
        memory: ChatMemory
        if tokens:
            memory = TokenWindowChatMemory(repository, 4 * limit, estimator, **options)
            model = Original(10**6, estimator.count_message, 2, always_keep_system_message_first=first)
        else:
            memory = MessageWindowChatMemory(repository, limit, **options)
            model = Original(10**6, always_keep_system_message_first=first)
        for message in messages:
            memory.add("c", message)
            model.add(message)
        model.limit = 4 * limit if tokens else limit
        assert memory.get("c") == model.messages()
