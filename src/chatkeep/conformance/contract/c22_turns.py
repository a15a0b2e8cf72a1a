"""C22 a turn is a unit for advisors: exactly its new messages are stored, once, however it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatkeep import (
    ChatMemoryRepository,
    InvalidAnswerError,
    InvalidConversationIdError,
    Message,
    Text,
    Thinking,
    ToolCall,
    TurnNotStoredError,
)
from chatkeep.conformance.blocking import wait_for
from chatkeep.conformance.harness import Form, Harness, needs
from chatkeep.conformance.scripted import STUCK, Talk, Way
from chatkeep.conformance.support import in_threads, texts

WAYS = pytest.mark.parametrize("way", ["call", "stream"])
POLICIES = pytest.mark.parametrize("on_error", ["discard", "keep_user", "keep_partial"])


def tool_round(number: int = 1) -> tuple[Message, Message, Message]:
    """What a model says that runs its tool itself: call, result, answer."""
    call = ToolCall(f"call_{number}", "weather", '{"city": "Oslo"}')
    return (
        Message.assistant("Let me look.", tool_calls=[call]),
        Message.tool("Rain.", call_id=call.id, name="weather"),
        Message.assistant(f"It rains. {number}"),
    )


class TestC22Turns:
    """A turn that succeeded."""

    @WAYS
    def test_a_turn_is_stored_whole_and_once(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """What is new is sent behind what was said before, and the log holds both turns, each message once."""
        talk = Talk(repository, form, conversation_id, ["It ", "rains."], ["You ", "asked about ", "Oslo."])
        first, second = Message.user("How is Oslo?"), Message.user("What did I ask?")
        answer = talk.ask(way, first)
        assert answer is not None
        assert (answer.text, answer.repeated) == ("It rains.", False)
        again = talk.ask(way, second)
        assert again is not None
        assert talk.model.prompts == [[first], [first, *answer.messages, second]]
        assert talk.stored() == [first, *answer.messages, second, *again.messages]
        assert talk.model.closed == 2

    @WAYS
    def test_tool_rounds_belong_to_the_turn(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """Calls, results and the last answer are stored as the model gave them, with their ids, thinking and all."""
        said = tool_round()
        script = [said[0], said[1], Thinking("Rain is wet.", "signature"), "It rains."]
        talk = Talk(repository, form, conversation_id, script, ["Yes."])
        question = Message.user("Weather?")
        answer = talk.ask(way, question)
        assert answer is not None
        assert answer.messages[:2] == said[:2]
        assert answer.message.parts == (Thinking("Rain is wet.", "signature"), Text("It rains."))
        assert talk.stored() == [question, *answer.messages]
        talk.ask(way, Message.user("Sure?"))
        assert talk.model.prompts[1][:-1] == [question, *answer.messages]

    @WAYS
    def test_a_call_that_the_caller_answers_goes_on_as_the_next_turn(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """The model leaves its calls open, and the results are the new messages of the next call."""
        call, result, _ = tool_round()
        talk = Talk(repository, form, conversation_id, [call], ["It rains."])
        question = Message.user("Weather?")
        talk.ask(way, question)
        talk.ask(way, result)
        assert talk.model.prompts[1] == [question, call, result]
        assert texts(talk.stored()) == ["Weather?", "Let me look.", "", "It rains."]

    @WAYS
    def test_a_repeated_turn_is_stored_once(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """The same message ids again, after a lost reply: the stored answer comes back, and no model is asked."""
        talk = Talk(repository, form, conversation_id, [*tool_round()], ["Later."])
        question = Message.user("Weather?")
        first = talk.ask(way, question)
        repeated = talk.ask(way, question)
        assert first is not None
        assert repeated is not None
        assert (repeated.messages, repeated.repeated) == (first.messages, True)
        assert len(talk.model.prompts) == 1
        assert talk.stored() == [question, *first.messages]
        later = talk.ask(way, Message.user("And now?"))
        assert later is not None
        assert later.text == "Later."
        again = talk.ask(way, question)
        assert again is not None
        assert again.messages == first.messages
        assert len(talk.stored()) == 6

    @WAYS
    def test_the_system_message_is_stored_when_it_changes(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """Given with every turn, as people do."""
        talk = Talk(repository, form, conversation_id, ["1"], ["2"], ["3"])
        for text, said in (("Be brief.", "a"), ("Be brief.", "b"), ("Be long.", "c")):
            talk.ask(way, Message.system(text), Message.user(said))
        assert [texts(prompt) for prompt in talk.model.prompts] == [
            ["Be brief.", "a"],
            ["Be brief.", "a", "1", "b"],
            ["Be long.", "a", "1", "b", "2", "c"],
        ]
        assert texts(talk.stored()) == ["Be brief.", "a", "1", "b", "2", "Be long.", "c", "3"]

    def test_turns_of_one_conversation_do_not_mix(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str
    ) -> None:
        """Asked at the same time, each turn lies together in the log."""
        talks = [Talk(repository, form, conversation_id, [*tool_round(number)]) for number in range(6)]
        asked = [Message.user(f"Weather {number}?") for number in range(6)]
        in_threads(6, lambda number: talks[number].ask("call", asked[number]))
        stored = talks[0].stored()
        assert len(stored) == 24
        for start in range(0, 24, 4):
            number = asked.index(stored[start])
            assert stored[start + 3].text == f"It rains. {number}"

    @needs("bounded_cost")
    def test_an_advised_call_costs_one_read_and_one_write(
        self, harness: Harness, repository: ChatMemoryRepository, form: Form, conversation_id: str
    ) -> None:
        """Whatever the turn holds."""
        talk = Talk(repository, form, conversation_id, ["1"], [*tool_round()])
        talk.ask("call", Message.user("first"))
        with harness.statements() as sent:
            talk.ask("call", Message.user("second"))
        assert len(sent) <= 1 + harness.append_statements

    @WAYS
    def test_a_conversation_id_is_required(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """There is no default, and what is no id is refused before the model is asked."""
        talk = Talk(repository, form, conversation_id, ["never said"])
        method: Any = getattr(talk.advised, way if form == "sync" else f"a{way}")
        with pytest.raises(TypeError, match="conversation_id"):
            method([Message.user("Hi")])
        for bad in ("", " x", "a\n", None):
            talk.conversation_id = bad  # type: ignore[assignment]
            with pytest.raises(InvalidConversationIdError):
                talk.ask(way, Message.user("Hi"))
        talk.conversation_id = conversation_id
        with pytest.raises(ValueError, match="nothing to answer"):
            talk.ask(way, Message.system("Be brief."))
        assert talk.model.prompts == []


class TestC22FailedTurns:
    """A turn that did not succeed: the policy decides what is stored, and the next prompt is valid."""

    @WAYS
    @POLICIES
    def test_an_error_of_the_model_leaves_what_the_policy_says(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way, on_error: str
    ) -> None:
        """In the middle of a text; the error reaches the caller as it is."""
        error = RuntimeError("overloaded")
        talk = Talk(repository, form, conversation_id, ["first"], ["It ra", error], ["next"], on_error=on_error)
        start, question, after = Message.user("start"), Message.user("Weather?"), Message.user("And now?")
        talk.ask(way, start)
        with pytest.raises(RuntimeError, match="overloaded") as caught:
            talk.ask(way, question)
        assert caught.value is error
        kept = {"discard": [], "keep_user": ["Weather?"], "keep_partial": ["Weather?", "It ra"]}[on_error]
        assert texts(talk.stored()) == ["start", "first", *kept]
        talk.ask(way, after)
        assert texts(talk.model.prompts[-1]) == ["start", "first", *kept, "And now?"]
        assert talk.model.closed == 3

    @WAYS
    @POLICIES
    def test_half_a_tool_round_spoils_no_prompt(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way, on_error: str
    ) -> None:
        """The model dies between its call and the result: no call without its result is stored or sent."""
        whole, half = tool_round(1), tool_round(2)
        script = [*whole[:2], half[0], RuntimeError("dead")]
        talk = Talk(repository, form, conversation_id, script, ["next"], on_error=on_error)
        question = Message.user("Weather?")
        talk.say_no_more(RuntimeError, way, question)
        stored = talk.stored()
        kept = {"discard": [], "keep_user": [question], "keep_partial": [question, *whole[:2]]}[on_error]
        assert stored[: len(kept)] == kept
        if on_error == "keep_partial":
            assert stored[-1].parts == (Text("Let me look."),)
            assert stored[-1].metadata == {"chatkeep.partial": True}
            assert len(stored) == len(kept) + 1
        else:
            assert len(stored) == len(kept)
        talk.ask(way, Message.user("And now?"))
        sent = talk.model.prompts[-1]
        assert {call.id for message in sent for call in message.tool_calls} == {
            result.call_id for message in sent for result in message.tool_results
        }

    @POLICIES
    def test_a_stream_that_is_left_is_a_failed_turn(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, on_error: str
    ) -> None:
        """After one chunk; the model's own stream is closed too."""
        talk = Talk(repository, form, conversation_id, ["It ", "rains."], on_error=on_error)
        assert talk.ask("stream", Message.user("Weather?"), read=1) is None
        kept = {"discard": [], "keep_user": ["Weather?"], "keep_partial": ["Weather?", "It "]}[on_error]
        assert texts(talk.stored()) == kept
        assert talk.model.closed == 1

    @WAYS
    def test_a_turn_that_failed_can_be_repeated(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """With the same ids: the question is stored once, and the answer that was broken off isn't sent."""
        script = ["It ra", RuntimeError("dead")]
        talk = Talk(repository, form, conversation_id, script, ["It rains."], ["Bye."], on_error="keep_partial")
        question = Message.user("Weather?")
        talk.say_no_more(RuntimeError, way, question)
        answer = talk.ask(way, question)
        assert answer is not None
        assert (answer.text, answer.repeated) == ("It rains.", False)
        assert talk.model.prompts[1] == [question]
        assert texts(talk.stored()) == ["Weather?", "It ra", "It rains."]

    @WAYS
    def test_an_answer_that_is_none_is_refused(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """No message at all, and things that are no message; nothing is stored."""
        talk = Talk(repository, form, conversation_id, [], [{"role": "assistant"}], ["a", None])
        for _ in range(3):
            talk.say_no_more(InvalidAnswerError, way, Message.user("Hi"))
        assert talk.stored() == []

    @WAYS
    def test_a_turn_that_could_not_be_stored_is_handed_back(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way
    ) -> None:
        """The model answered: the error holds the whole turn, which can be added later."""
        taken = Message.assistant("other")
        repository.append(conversation_id, taken)
        answer = Message.assistant("the same id with another content", id=taken.id)
        talk = Talk(repository, form, conversation_id, [answer])
        question = Message.user("Hi")
        error = talk.say_no_more(TurnNotStoredError, way, question)
        assert isinstance(error, TurnNotStoredError)
        assert error.messages == (question, answer)
        assert isinstance(error.__cause__, ValueError)
        assert talk.stored() == [taken]

    @WAYS
    @POLICIES
    def test_a_cancelled_turn_is_a_failed_turn(
        self, repository: ChatMemoryRepository, form: Form, conversation_id: str, way: Way, on_error: str
    ) -> None:
        """By a time-out in the asynchronous form, by an interrupt in the other."""
        script = ["It ", STUCK if form == "async" else KeyboardInterrupt()]
        talk = Talk(repository, form, conversation_id, script, ["next"], on_error=on_error)
        question = Message.user("Weather?")
        if form == "async":
            wait_for(_timed_out(talk, way, question))
        else:
            with pytest.raises(KeyboardInterrupt):
                talk.ask(way, question)
        kept = {"discard": [], "keep_user": ["Weather?"], "keep_partial": ["Weather?", "It "]}[on_error]
        assert texts(talk.stored()) == kept
        talk.ask(way, Message.user("And now?"))
        assert texts(talk.model.prompts[-1]) == [*kept, "And now?"]
        assert talk.model.closed == 2


async def _timed_out(talk: Talk, way: Way, question: Message) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await talk._ask(way, [question], {"conversation_id": talk.conversation_id}, None)
