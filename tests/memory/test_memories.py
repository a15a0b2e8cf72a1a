"""What a memory is given and refuses, its two forms, and stores that can do less."""

import asyncio
import inspect
import typing
from pathlib import Path
from typing import Any

import pytest

from chatkeep import (
    InvalidConversationIdError,
    Message,
    MessageTooLargeError,
    RepositoryClosedError,
    UnsupportedOperationError,
    WindowOverflowError,
    memory,
    open_async_repository,
    open_repository,
)
from chatkeep.custom import repository_over
from chatkeep.memory import (
    AsyncChatMemory,
    AsyncMessageWindowChatMemory,
    ChatMemory,
    ConversationMemory,
    MessageWindowChatMemory,
    TokenWindowChatMemory,
    TurnWindowChatMemory,
)
from tests.custom.stores import ConditionalDictStore, DictStore

KINDS = ["MessageWindowChatMemory", "TokenWindowChatMemory", "TurnWindowChatMemory"]


@pytest.fixture
def repository() -> Any:
    with open_repository("inprocess:") as opened:
        yield opened


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("limit", [0, -1, 1.5, "7", None, True])
def test_a_wrong_limit_is_refused_when_made(repository: Any, name: str, limit: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"max_\w+: expected"):
        getattr(memory, name)(repository, limit)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("limit", [0, None, "7", 2.0])
def test_a_wrong_dynamic_limit_is_refused_when_asked(repository: Any, name: str, limit: Any) -> None:
    made = getattr(memory, name)(repository, lambda _: limit)
    made.add("c", Message.user("hi"))
    with pytest.raises((ValueError, TypeError), match=r"max_\w+: expected"):
        made.get("c")


def test_a_dynamic_limit_is_asked_for_each_conversation(repository: Any) -> None:
    asked: list[str] = []

    def limit(conversation_id: str) -> int:
        asked.append(conversation_id)
        return 1 if conversation_id == "short" else 4

    made = MessageWindowChatMemory(repository, limit)
    for name in ("short", "long"):
        made.add(name, *(Message.user(f"u{n}") for n in range(5)))
    assert [len(made.get(name)) for name in ("short", "long")] == [1, 4]
    assert asked == ["short", "long"]


WRONG: list[dict[str, Any]] = [
    {"boundary": "group"},
    {"eviction": "drop"},
    {"on_overflow": "raise"},
    {"always_keep_system_message_first": 1},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_wrong_choices_are_refused_by_name(repository: Any, options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        MessageWindowChatMemory(repository, 5, **options)


@pytest.mark.parametrize(
    "wrong", [None, "text", {"role": "user"}, 7, [Message.user("in a list")]], ids=lambda value: type(value).__name__
)
@pytest.mark.parametrize("eviction", ["keep", "delete"])
def test_what_is_no_message_is_refused(repository: Any, wrong: Any, eviction: Any) -> None:
    made = MessageWindowChatMemory(repository, eviction=eviction)
    made.add("c", Message.user("there"))
    with pytest.raises(TypeError, match=r"messages\[1\]: expected a Message"):
        made.add("c", Message.user("good"), wrong)
    with pytest.raises(TypeError, match=r"upcoming\[0\]: expected a Message"):
        made.get("c", upcoming=[wrong])
    with pytest.raises(TypeError, match=r"messages\[0\]: expected a Message"):
        made.set("c", [wrong])
    assert repository.count_messages("c") == 1


@pytest.mark.parametrize("wrong", [None, "text", 7, Message.user("alone")], ids=lambda value: type(value).__name__)
def test_what_is_no_list_of_messages_is_refused(repository: Any, wrong: Any) -> None:
    made = MessageWindowChatMemory(repository)
    with pytest.raises(TypeError, match="messages: expected an iterable"):
        made.set("c", wrong)
    with pytest.raises(TypeError, match="upcoming: expected an iterable"):
        made.get("c", upcoming=wrong)


@pytest.mark.parametrize("wrong", ["", None, " x", "a\n", "x" * 256], ids=lambda value: type(value).__name__)
def test_a_wrong_conversation_id_is_refused_by_every_method(repository: Any, wrong: Any) -> None:
    made = MessageWindowChatMemory(repository)
    for call in (made.get, made.clear, made.add, lambda each: made.set(each, []), made.conversation):
        with pytest.raises(InvalidConversationIdError):
            call(wrong)


def test_a_closed_repository_says_so() -> None:
    with open_repository("inprocess:") as opened:
        made = MessageWindowChatMemory(opened)
    for call in (lambda: made.get("c"), lambda: made.add("c"), lambda: made.clear("c"), lambda: made.set("c", [])):
        with pytest.raises(RepositoryClosedError):
            call()


def test_the_repository_must_be_of_the_same_form(repository: Any) -> None:
    with pytest.raises(TypeError, match="use MessageWindowChatMemory"):
        AsyncMessageWindowChatMemory(repository)
    with pytest.raises(TypeError, match="expected ChatMemoryRepository, got str"):
        MessageWindowChatMemory("sqlite:///chat.db")  # type: ignore[arg-type]

    async def other() -> None:
        async with await open_async_repository("inprocess:") as opened:
            with pytest.raises(TypeError, match="use AsyncMessageWindowChatMemory"):
                MessageWindowChatMemory(opened)  # type: ignore[arg-type]

    asyncio.run(other())


def test_an_asynchronous_limit_needs_the_asynchronous_form(repository: Any) -> None:
    async def limit(conversation_id: str) -> int:
        return 3

    with pytest.raises(TypeError, match="asynchronous"):
        MessageWindowChatMemory(repository, limit).get("c")

    async def awaited() -> list[Message]:
        async with await open_async_repository("inprocess:") as opened:
            made = AsyncMessageWindowChatMemory(opened, limit)
            await made.add("c", *(Message.user(str(n)) for n in range(9)))
            return await made.conversation("c").get()

    assert len(asyncio.run(awaited())) == 3


def test_a_bound_conversation_is_the_memory_s(repository: Any) -> None:
    made = MessageWindowChatMemory(repository, 3)
    bound = made.conversation("c")
    assert bound.id == "c"
    bound.add(Message.user("a"), Message.assistant("b"))
    assert bound.get() == made.get("c")
    assert [m.text for m in bound.get(upcoming=[Message.user("c")])] == ["a", "b", "c"]
    bound.set([Message.user("d")])
    assert [m.text for m in made.get("c")] == ["d"]
    bound.clear()
    assert made.get("c") == []
    assert "'c'" in repr(bound)
    assert "max_messages=3" in repr(bound)


def test_an_overflow_in_messages_has_the_numbers(repository: Any) -> None:
    made = MessageWindowChatMemory(repository, 1, on_overflow="error")
    made.add("c", Message.system("S"), Message.user("u"), Message.assistant("a"))
    with pytest.raises(WindowOverflowError) as caught:
        made.get("c")
    assert (caught.value.size, caught.value.limit, caught.value.unit) == (3, 1, "messages")
    assert [m.text for m in MessageWindowChatMemory(repository, 1).get("c")] == ["S", "u", "a"]


def test_a_message_too_large_is_refused_before_anything(repository: Any) -> None:
    for eviction in ("keep", "delete"):
        made = MessageWindowChatMemory(repository, eviction=eviction)
        with pytest.raises(MessageTooLargeError):
            made.add("c", Message.user("x" * (repository.capabilities.max_message_bytes + 1)))
        assert repository.get_conversation("c") is None


def test_a_turn_window_shows_whole_turns(repository: Any) -> None:
    made = TurnWindowChatMemory(repository, 2)
    for number in range(4):
        made.add("c", Message.user(f"u{number}"), *(Message.assistant(f"a{number}.{n}") for n in range(number)))
    assert [m.text for m in made.get("c")] == ["u2", "a2.0", "a2.1", "u3", "a3.0", "a3.1", "a3.2"]


def test_a_read_only_account_still_has_its_view(tmp_path: Path) -> None:
    """Counts that can't be stored are made again next time."""
    url = f"sqlite:///{tmp_path}/chat.db"
    with open_repository(url) as opened:
        opened.append("c", [Message.user("hi")])

    from chatkeep import StorageAccessError

    with open_repository(url) as opened:
        refused = opened._unchecked.backend

        def refuse(*arguments: Any) -> None:
            raise StorageAccessError("read-only")

        refused.store_token_counts = refuse  # type: ignore[method-assign]
        assert [m.text for m in TokenWindowChatMemory(opened, 100).get("c")] == ["hi"]


def test_a_store_of_four_verbs_can_do_what_it_can_carry() -> None:
    with repository_over(DictStore()) as over:
        made = MessageWindowChatMemory(over, 3)
        made.add("c", Message.system("S"), *(Message.user(f"u{n}") for n in range(5)))
        assert [m.text for m in made.get("c")] == ["S", "u3", "u4"]
        for call in (lambda: made.clear("c"), lambda: made.set("c", [])):
            with pytest.raises(UnsupportedOperationError, match="context"):
                call()
        with pytest.raises(UnsupportedOperationError, match="conditional_writes"):
            MessageWindowChatMemory(over, 3, eviction="delete")
    with repository_over(ConditionalDictStore()) as over:
        made = MessageWindowChatMemory(over, 3, eviction="delete")
        made.add("c", Message.system("S"), *(Message.user(f"u{n}") for n in range(5)))
        assert [m.text for m in over.find_by_conversation_id("c")] == ["S", "u3", "u4"]
        made.clear("c")
        assert made.get("c") == []


# --- both forms ---

SYNC = {name: getattr(memory, name) for name in memory.__all__ if hasattr(memory, f"Async{name}")}


@pytest.mark.parametrize("name", SYNC)
def test_both_forms_are_alike(name: str) -> None:
    """The same methods with the same arguments and one text; awaited where there is I/O."""
    one, two = SYNC[name], getattr(memory, f"Async{name}")
    public = {each for each in dir(one) if not each.startswith("_")}
    assert public == {each for each in dir(two) if not each.startswith("_")}
    assert one is ConversationMemory or two.__doc__
    for method in public:
        if not inspect.isfunction(getattr(one, method)):
            continue
        first, second = getattr(one, method), getattr(two, method)
        assert inspect.signature(first).parameters == inspect.signature(second).parameters, method
        assert first.__doc__ == second.__doc__
        assert first.__doc__
        assert inspect.iscoroutinefunction(second) == (method != "conversation")
    made = [inspect.signature(each.__init__).parameters for each in (one, two)]
    assert list(made[0]) == list(made[1])


def test_every_kind_is_a_chat_memory() -> None:
    for name in [*KINDS, "SummarizingChatMemory"]:
        assert issubclass(getattr(memory, name), ChatMemory)
        assert issubclass(getattr(memory, f"Async{name}"), AsyncChatMemory)
        assert typing.get_type_hints(getattr(memory, name).get)["return"] == list[Message]
