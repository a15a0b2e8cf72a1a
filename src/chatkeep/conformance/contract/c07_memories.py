"""C7 memory is not history, as far as memories go: a view deletes nothing, unless it is told to."""

from __future__ import annotations

import pytest

from chatkeep import ChatMemoryRepository, InvalidMessageError, Message, ToolCall
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import counted, in_threads, memory_over, new_id, said, texts

WINDOW = "MessageWindowChatMemory"


class TestC07Keep:
    """`eviction="keep"`, the default."""

    def test_what_left_the_window_is_still_there(self, opened: Opened, conversation_id: str) -> None:
        """Fifty messages, a window of ten; later a larger one sees the older messages again."""
        repository = opened()
        memory = memory_over(repository, WINDOW, 10)
        messages = said(50)
        for number in range(0, 50, 2):
            memory.add(conversation_id, *messages[number : number + 2])
        assert memory.get(conversation_id) == messages[-10:]
        again = opened()
        assert again.find_by_conversation_id(conversation_id) == messages
        assert memory_over(again, WINDOW, 40).get(conversation_id) == messages[-40:]
        assert memory_over(again, WINDOW, lambda _: 4).get(conversation_id) == messages[-4:]

    def test_upcoming_messages_are_looked_at_and_not_stored(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """The view is the one that adding them gives."""
        memory = memory_over(repository, WINDOW, 5)
        memory.add(conversation_id, Message.system("S"), *said(6))
        upcoming = [Message.system("T"), Message.user("next")]
        view = memory.get(conversation_id, upcoming=upcoming)
        assert repository.count_messages(conversation_id) == 7
        memory.add(conversation_id, *upcoming)
        assert memory.get(conversation_id) == view
        assert memory.get(conversation_id, upcoming=upcoming) == view, "a repeated turn is seen once"

    def test_adding_again_is_safe(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """The same ids are stored once; another content under an id is refused and stores nothing."""
        memory = memory_over(repository, WINDOW)
        messages = [Message.system("S"), *said(2)]
        for _ in range(2):
            memory.add(conversation_id, *messages)
        assert memory.get(conversation_id) == repository.find_by_conversation_id(conversation_id) == messages
        with pytest.raises(InvalidMessageError, match="another content"):
            memory.add(conversation_id, Message.user("new"), Message.user("other", id=messages[1].id))
        assert repository.count_messages(conversation_id) == 3

    @needs("context")
    def test_clear_empties_the_view_and_not_the_log(self, opened: Opened, conversation_id: str) -> None:
        """Also for other handles, and the system message goes too; what comes later is seen alone."""
        repository = opened()
        memory = memory_over(repository, WINDOW)
        old = [Message.system("S"), *said(4)]
        memory.add(conversation_id, *old)
        memory.clear(conversation_id)
        assert memory.get(conversation_id) == memory_over(opened(), WINDOW).get(conversation_id) == []
        assert repository.find_by_conversation_id(conversation_id) == old
        new = said(2, "new")
        memory.add(conversation_id, *new)
        assert memory.get(conversation_id) == new
        assert repository.find_by_conversation_id(conversation_id) == old + new
        memory.set(conversation_id, [])
        assert memory.get(conversation_id) == []

    @needs("context")
    def test_set_begins_anew_and_known_messages_move(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A message that is set again keeps its id and stands once in the log, at the end."""
        memory = memory_over(repository, WINDOW)
        old = said(6)
        memory.add(conversation_id, *old)
        chosen = [Message.user("summed up"), *old[4:]]
        for _ in range(2):
            memory.set(conversation_id, chosen)
            assert memory.get(conversation_id) == chosen
            assert repository.find_by_conversation_id(conversation_id) == old[:4] + chosen
        assert repository.count_messages(conversation_id) == 7

    @needs("context")
    def test_a_message_that_left_may_be_added_again(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """It moves to the end; under its id another content is still refused, and the repository keeps its own rule."""
        memory = memory_over(repository, WINDOW)
        first, second = said(2)
        memory.add(conversation_id, first, second)
        memory.clear(conversation_id)
        with pytest.raises(InvalidMessageError, match="another content"):
            memory.add(conversation_id, Message.user("other", id=first.id))
        version = repository.append(conversation_id, first)
        assert memory.get(conversation_id) == [], "an append of the repository moves nothing"
        memory.add(conversation_id, first)
        assert memory.get(conversation_id) == [first]
        assert repository.find_by_conversation_id(conversation_id) == [second, first]
        assert repository.append(conversation_id, []) > version

    @needs("context")
    def test_clearing_counts_as_a_change(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """So that a writer who saw the context before is told. An unknown conversation is not made."""
        memory = memory_over(repository, WINDOW)
        version = repository.append(conversation_id, said(2))
        memory.clear(conversation_id)
        assert repository.append(conversation_id, []) > version
        unknown = new_id()
        memory.clear(unknown)
        memory.set(unknown, [])
        memory.add(unknown)
        assert repository.get_conversation(unknown) is None

    @needs("context")
    def test_positions_are_not_used_again_by_a_move(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A moved message has a position of its own behind all others, and a page goes on past it."""
        memory = memory_over(repository, WINDOW)
        messages = said(3)
        memory.add(conversation_id, *messages)
        before = repository.history(conversation_id).items
        memory.set(conversation_id, messages[:1])
        after = repository.history(conversation_id).items
        assert [entry.message for entry in after] == [*messages[1:], messages[0]]
        assert after[-1].position > before[-1].position
        assert [entry.position for entry in after[:2]] == [entry.position for entry in before[1:]]

    @needs("context")
    def test_an_owner_s_context_is_its_own(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Clearing one owner's conversation leaves the same id of another alone."""
        ada, bob = repository.for_owner(new_id("ada")), repository.for_owner(new_id("bob"))
        messages = said(2)
        for owned in (ada, bob):
            memory_over(owned, WINDOW).add(conversation_id, *messages)
        memory_over(ada, WINDOW).clear(conversation_id)
        assert memory_over(ada, WINDOW).get(conversation_id) == []
        assert memory_over(bob, WINDOW).get(conversation_id) == messages

    @needs("bounded_cost", "statements")
    def test_a_view_is_one_statement_at_any_length(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """And the same one; an addition costs what an append costs."""
        memory = memory_over(repository, WINDOW, 20)
        memory.add(conversation_id, Message.system("S"), *said(30))
        short = counted(harness, lambda: memory.get(conversation_id))
        repository.append(conversation_id, said(2000))
        assert counted(harness, lambda: memory.get(conversation_id)) == short
        assert len(short) <= (1 if harness.append_statements else 0), short
        added = counted(harness, lambda: memory.add(conversation_id, *said(2)))
        assert len(added) <= harness.append_statements, added


@needs("conditional_writes")
class TestC07Delete:
    """`eviction="delete"`."""

    def test_exactly_the_view_stays_stored(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """After each addition, system message included."""
        memory = memory_over(repository, WINDOW, 4, eviction="delete")
        memory.add(conversation_id, Message.system("S"))
        for message in said(20):
            memory.add(conversation_id, message)
            view = memory.get(conversation_id)
            assert repository.find_by_conversation_id(conversation_id) == view
        assert texts(view) == ["S", "line 00018", "line 00019"]

    def test_a_group_that_is_being_answered_stays(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Also where no user message leads to it, so that its results find their call."""
        memory = memory_over(repository, WINDOW, 3, eviction="delete")
        call = Message.assistant(tool_calls=[ToolCall("1", "look"), ToolCall("2", "look")])
        memory.add(conversation_id, call)
        assert memory.get(conversation_id) == []
        assert repository.find_by_conversation_id(conversation_id) == [call]
        question = Message.user("and?")
        results = [Message.tool("one", call_id="1"), Message.tool("two", call_id="2")]
        memory.set(conversation_id, [question, call])
        memory.add(conversation_id, results[0])
        memory.add(conversation_id, results[1])
        assert memory.get(conversation_id) == [question, call, *results], "the least view, beyond the limit"

    def test_set_and_clear_delete(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Nothing of what was there before is stored any more; an unknown conversation is not made."""
        memory = memory_over(repository, WINDOW, 4, eviction="delete")
        memory.add(conversation_id, *said(4))
        memory.set(conversation_id, said(10, "new"))
        expected = ["new 00006", "new 00007", "new 00008", "new 00009"]
        assert texts(repository.find_by_conversation_id(conversation_id)) == expected
        memory.clear(conversation_id)
        assert repository.find_by_conversation_id(conversation_id) == memory.get(conversation_id) == []
        unknown = new_id()
        memory.clear(unknown)
        assert repository.get_conversation(unknown) is None

    def test_a_long_log_is_cut_at_the_first_addition(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Whoever turns from keep to delete."""
        repository.append(conversation_id, said(300))
        memory = memory_over(repository, WINDOW, 3, eviction="delete")
        memory.add(conversation_id, Message.user("now"))
        assert texts(repository.find_by_conversation_id(conversation_id)) == ["line 00298", "line 00299", "now"]

    def test_adding_again_is_safe(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """The same ids are stored once; another content under an id is refused."""
        memory = memory_over(repository, WINDOW, 4, eviction="delete")
        messages = said(2)
        for _ in range(2):
            memory.add(conversation_id, *messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        with pytest.raises(InvalidMessageError, match="another content"):
            memory.add(conversation_id, Message.user("other", id=messages[0].id))
        assert memory.get(conversation_id) == messages

    def test_parallel_additions_all_arrive(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Each is planned anew on what the others stored."""
        memory = memory_over(repository, WINDOW, 100, eviction="delete")
        questions = [Message.user(f"question {number}") for number in range(6)]
        in_threads(6, lambda number: memory.add(conversation_id, questions[number]))
        found = repository.find_by_conversation_id(conversation_id)
        assert sorted(texts(found)) == texts(questions)
