"""SummarizingChatMemory: triggers, what is summed up and what stays verbatim, failures, and two workers at once."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chatkeep import (
    ChatMemoryRepository,
    Message,
    ToolCall,
    UnsupportedOperationError,
    open_async_repository,
    open_repository,
)
from chatkeep.conformance.prompts import problems
from chatkeep.memory import (
    AsyncSummarizingChatMemory,
    HeuristicTokenCountEstimator,
    MessageWindowChatMemory,
    SummarizingChatMemory,
)


class Summarizer:
    """Joins what it is given, and remembers."""

    def __init__(self) -> None:
        self.given: list[tuple[list[str], str | None]] = []

    def __call__(self, messages: list[Message], previous: str | None) -> str:
        self.given.append(([message.text for message in messages], previous))
        return "|".join([*([previous] if previous else []), *(message.text for message in messages)])


def turn(number: int) -> list[Message]:
    return [Message.user(f"u{number}"), Message.assistant(f"a{number}")]


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


@pytest.fixture(params=["inprocess", "sqlite"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChatMemoryRepository]:
    with open_repository("inprocess:" if request.param == "inprocess" else f"sqlite:///{tmp_path}/chat.db") as opened:
        yield opened


@pytest.mark.parametrize("limit", [{"max_messages": 6}, {"max_turns": 3}, {"max_tokens": 35}])
def test_what_leaves_the_window_is_summed_up(repository: ChatMemoryRepository, limit: dict[str, Any]) -> None:
    summarizer = Summarizer()
    memory = SummarizingChatMemory(repository, summarizer, keep_turns=2, **limit)
    for number in range(4):
        memory.add("c", *turn(number))
    assert summarizer.given == [(["u0", "a0", "u1", "a1"], None)]
    heading = "Summary of the conversation so far:\n"
    assert texts(memory.get("c")) == [f"{heading}u0|a0|u1|a1", "u2", "a2", "u3", "a3"]
    for number in range(4, 8):
        memory.add("c", *turn(number))
    assert summarizer.given[1][1] == "u0|a0|u1|a1"
    # Everything is in the summary or verbatim, once and in order.
    shown = memory.get("c")
    said = shown[0].text.removeprefix(heading).split("|") + texts(shown[1:])
    assert said == [f"{who}{number}" for number in range(8) for who in "ua"]
    assert problems(shown) == []


def test_the_summary_stands_behind_the_system_message(repository: ChatMemoryRepository) -> None:
    memory = SummarizingChatMemory(repository, Summarizer(), max_turns=1, keep_turns=1, heading="So far:")
    memory.add("c", Message.system("Be brief."), *turn(0))
    memory.add("c", *turn(1))
    assert texts(memory.get("c")) == ["Be brief.\n\nSo far:\nu0|a0", "u1", "a1"]
    memory.add("c", Message.system("Be kind."))
    assert memory.get("c")[0].text == "Be kind.\n\nSo far:\nu0|a0"


def test_the_log_stays_whole_and_the_summary_is_one_row(repository: ChatMemoryRepository) -> None:
    memory = SummarizingChatMemory(repository, Summarizer(), max_turns=2, keep_turns=1)
    for number in range(3):
        memory.add("c", *turn(number))
    log = repository.history("c").items
    rows = [entry for entry in log if entry.message.role == "chatkeep.summary"]
    assert len(rows) == 1
    covered = next(entry for entry in log if entry.message.text == "a1")
    assert rows[0].message.metadata == {"covers_position": covered.position, "covers_message": covered.message.id}
    others = [entry.message.text for entry in log if entry not in rows]
    assert others == ["u0", "a0", "u1", "a1", "u2", "a2"]
    assert texts(MessageWindowChatMemory(repository, 100).get("c")) == others, "a window shows no summary"


def test_a_tool_exchange_is_never_parted(repository: ChatMemoryRepository) -> None:
    memory = SummarizingChatMemory(repository, Summarizer(), max_messages=4, keep_turns=1)
    for number in range(4):
        call = Message.assistant(tool_calls=[ToolCall(f"call-{number}", "f")])
        memory.add("c", Message.user(f"u{number}"), call, Message.tool("r", call_id=f"call-{number}"))
        memory.add("c", Message.assistant(f"a{number}"))
        assert problems(memory.get("c")) == []
        assert f"u{number}" in texts(memory.get("c"))


def test_a_failing_summarizer_loses_and_blocks_nothing(
    repository: ChatMemoryRepository, caplog: pytest.LogCaptureFixture
) -> None:
    broken = True
    works = Summarizer()

    def summarize(messages: list[Message], previous: str | None) -> str:
        if broken:
            raise RuntimeError("no model today")
        return works(messages, previous)

    memory = SummarizingChatMemory(repository, summarize, max_turns=2, keep_turns=1)
    with caplog.at_level(logging.WARNING, "chatkeep.memory"):
        for number in range(5):
            memory.add("c", *turn(number))
            assert texts(memory.get("c"))[-2:] == [f"u{number}", f"a{number}"]
    assert len(caplog.records) == 3
    assert texts(memory.get("c")) == ["u3", "a3", "u4", "a4"], "the window of the limit"
    with pytest.raises(RuntimeError):
        memory.summarize("c")
    broken = False
    memory.add("c", *turn(5))
    assert works.given == [([f"{who}{number}" for number in range(5) for who in "ua"], None)]
    assert texts(memory.get("c"))[1:] == ["u5", "a5"]


@pytest.mark.parametrize("wrong", ["", "  ", None, 7])
def test_a_summary_must_be_a_text(repository: ChatMemoryRepository, wrong: Any) -> None:
    memory = SummarizingChatMemory(repository, lambda *_: wrong, max_turns=1, keep_turns=1, automatic=False)
    memory.add("c", *turn(0), *turn(1))
    with pytest.raises((TypeError, ValueError), match="summarize"):
        memory.summarize("c")
    assert repository.count_messages("c") == 4


def test_it_can_be_done_when_it_suits(repository: ChatMemoryRepository) -> None:
    summarizer = Summarizer()
    memory = SummarizingChatMemory(repository, summarizer, max_turns=1, keep_turns=1, automatic=False)
    for number in range(3):
        memory.add("c", *turn(number))
    assert summarizer.given == []
    assert memory.summarize("c") is True
    assert memory.summarize("c") is False
    assert memory.summarize("unknown") is False
    assert texts(memory.get("c"))[1:] == ["u2", "a2"]


def test_of_two_workers_one_wins(repository: ChatMemoryRepository) -> None:
    """Both sum up the same part at the same time."""
    meet = threading.Barrier(2, timeout=20)

    def summarize(messages: list[Message], previous: str | None) -> str:
        meet.wait()
        return "summed up"

    memory = SummarizingChatMemory(repository, summarize, max_turns=1, keep_turns=1, automatic=False)
    memory.add("c", *turn(0), *turn(1))
    stored: list[bool] = []
    workers = [threading.Thread(target=lambda: stored.append(memory.summarize("c"))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(stored) == [False, True]
    log = repository.find_by_conversation_id("c")
    assert sum(message.role == "chatkeep.summary" for message in log) == 1


def test_a_conversation_that_grows_meanwhile_keeps_its_summary(repository: ChatMemoryRepository) -> None:
    calls: list[int] = []

    def summarize(messages: list[Message], previous: str | None) -> str:
        calls.append(len(messages))
        repository.append("c", turn(9))
        return "summed up"

    memory = SummarizingChatMemory(repository, summarize, max_turns=1, keep_turns=1, automatic=False)
    memory.add("c", *turn(0), *turn(1))
    assert memory.summarize("c") is True
    assert calls == [2], "it was not made twice"
    assert texts(memory.get("c"))[1:] == ["u1", "a1", "u9", "a9"][2:]


@pytest.mark.parametrize("what", ["clear", "delete a message", "delete the conversation", "save_all"])
def test_a_summary_of_what_is_gone_is_not_stored(repository: ChatMemoryRepository, what: str) -> None:
    def summarize(messages: list[Message], previous: str | None) -> str:
        if what == "clear":
            memory.clear("c")
        elif what == "delete a message":
            repository.delete_messages("c", [messages[0].id])
        elif what == "delete the conversation":
            repository.delete_by_conversation_id("c")
        else:
            repository.save_all("c", turn(7))
        return "a secret"

    memory = SummarizingChatMemory(repository, summarize, max_turns=1, keep_turns=1, automatic=False)
    memory.add("c", *turn(0), *turn(1))
    assert memory.summarize("c") is False
    assert "secret" not in "".join(texts(repository.find_by_conversation_id("c")))


def test_clear_ends_a_summary_too(repository: ChatMemoryRepository) -> None:
    memory = SummarizingChatMemory(repository, Summarizer(), max_turns=1, keep_turns=1)
    memory.add("c", *turn(0), *turn(1))
    memory.add("c", *turn(2))
    memory.clear("c")
    assert memory.get("c") == []
    memory.add("c", *turn(3))
    assert texts(memory.get("c")) == ["u3", "a3"]


def test_a_summary_survives_the_conversation_being_saved_anew(repository: ChatMemoryRepository) -> None:
    """Positions change then; the id of the last covered message tells."""
    memory = SummarizingChatMemory(repository, Summarizer(), max_turns=2, keep_turns=1)
    for number in range(3):
        memory.add("c", *turn(number))
    before = memory.get("c")
    repository.save_all("copy", repository.find_by_conversation_id("c"))
    assert memory.get("copy") == before
    repository.save_all("c", repository.find_by_conversation_id("c"))
    assert memory.get("c") == before


def test_upcoming_messages_are_part_of_the_view(repository: ChatMemoryRepository) -> None:
    memory = SummarizingChatMemory(repository, Summarizer(), max_turns=2, keep_turns=1)
    for number in range(3):
        memory.add("c", *turn(number))
    question = Message.user("next")
    assert texts(memory.get("c", upcoming=[question]))[1:] == ["u2", "a2", "next"]
    assert repository.count_messages("c") == 7


async def _asynchronously(tmp_path: Path) -> None:
    async def summarize(messages: list[Message], previous: str | None) -> str:
        return "+".join(message.text for message in messages)

    async def limit(conversation_id: str) -> int:
        return {"c": 1}[conversation_id]

    async with await open_async_repository(f"sqlite:///{tmp_path}/chat.db") as repository:
        memory = AsyncSummarizingChatMemory(repository, summarize, max_turns=limit, keep_turns=1)
        await memory.add("c", *turn(0), *turn(1))
        assert texts(await memory.get("c"))[0].endswith("u0+a0")


def test_the_summarizer_may_be_a_coroutine_function(tmp_path: Path) -> None:
    import asyncio

    asyncio.run(_asynchronously(tmp_path))


def test_a_coroutine_function_needs_the_asynchronous_form(repository: ChatMemoryRepository) -> None:
    async def summarize(messages: list[Message], previous: str | None) -> str:
        return ""

    memory = SummarizingChatMemory(repository, summarize, max_turns=1, keep_turns=1, automatic=False)
    memory.add("c", *turn(0), *turn(1))
    with pytest.raises(TypeError, match="asynchronous"):
        memory.summarize("c")


def test_wrong_arguments_are_refused(repository: ChatMemoryRepository) -> None:
    make = SummarizingChatMemory
    with pytest.raises(ValueError, match="exactly one"):
        make(repository, Summarizer())
    with pytest.raises(ValueError, match="exactly one"):
        make(repository, Summarizer(), max_turns=1, max_tokens=1)
    with pytest.raises(ValueError, match="estimator"):
        make(repository, Summarizer(), max_turns=1, estimator=HeuristicTokenCountEstimator())
    with pytest.raises(TypeError, match="summarize"):
        make(repository, "a text", max_turns=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="keep_turns"):
        make(repository, Summarizer(), max_turns=1, keep_turns=0)


def test_a_store_without_conditional_writes_is_refused() -> None:
    from chatkeep.custom import repository_over
    from tests.custom.stores import DictStore

    with repository_over(DictStore()) as over, pytest.raises(UnsupportedOperationError, match="conditional_writes"):
        SummarizingChatMemory(over, Summarizer(), max_turns=1)
