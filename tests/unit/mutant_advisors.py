"""Mutants of what stands around a repository: advisors, rendering, vectors."""

from typing import Any

import pytest

from chatkeep.advisors import rendering, turn
from chatkeep.advisors.model import Collector
from chatkeep.advisors.turn import Turns
from chatkeep.conformance.scripted import ListStore
from chatkeep.repository import RepositoryBase
from tests.unit.mutants import caught_by


@caught_by(
    "TestC22Turns::test_tool_rounds_belong_to_the_turn", "TestC22Turns::test_turns_of_one_conversation_do_not_mix"
)
def stores_the_last_message_alone(patch: pytest.MonkeyPatch) -> None:
    end = Turns.end
    patch.setattr(Turns, "end", lambda self, request, answer: end(self, request, answer[-1:]))


@caught_by("TestC22Turns::test_a_repeated_turn_is_stored_once")
def asks_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(turn, "_stored", lambda view, new: (len(view) - 1, []))


@caught_by(
    "TestC22Turns::test_a_turn_is_stored_whole_and_once",
    "TestC22FailedTurns::test_an_error_of_the_model_leaves_what_the_policy_says",
    "TestC22FailedTurns::test_a_cancelled_turn_is_a_failed_turn",
    "TestC22FailedTurns::test_a_stream_that_is_left_is_a_failed_turn",
)
def stores_the_question_at_once(patch: pytest.MonkeyPatch) -> None:
    begin = Turns.begin

    def stores(self: Turns, conversation_id: str, messages: Any) -> Any:
        request = yield from begin(self, conversation_id, messages)
        yield from Turns.end(self, request, ())
        yield from Turns.end(self, request, (type(request.new[0]).user("twice"),))
        return request

    patch.setattr(Turns, "begin", stores)


@caught_by("TestC22FailedTurns::test_half_a_tool_round_spoils_no_prompt")
def keeps_what_was_begun(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Collector, "partial", lambda self: list(self._messages))


@caught_by(
    "TestC22FailedTurns::test_an_error_of_the_model_leaves_what_the_policy_says",
    "TestC22FailedTurns::test_a_cancelled_turn_is_a_failed_turn",
)
def keeps_nothing_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Turns, "fail", lambda *_: iter(()))


@caught_by(
    "TestC21Prompts::test_a_text_is_one_line_whatever_it_holds",
    "TestC21Prompts::test_every_part_of_a_message_is_escaped",
)
def escapes_no_more_than_json_does(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rendering, "_ESCAPES", {})


@caught_by("TestC21Prompts::test_a_text_is_one_line_whatever_it_holds")
def renders_by_format(patch: pytest.MonkeyPatch) -> None:
    def render(self: rendering.Template, instructions: str, memory: str) -> str:
        return "RULES {braces}\n" + instructions.replace("{memory}", memory) + f"\n<memory>\n{memory}\n</memory>\nEND"

    patch.setattr(rendering.Template, "render", render)


@caught_by("TestC20VectorsInAStore::test_a_deletion_empties_the_store")
def forgets_to_forget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RepositoryBase, "_forget_vectors_in", lambda self, store: None)


@caught_by("TestC20VectorsInAStore::test_each_message_is_embedded_once")
def indexes_from_the_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ListStore, "last_position", lambda *_: None)


@caught_by("TestC20VectorsInAStore::test_what_left_the_context_is_not_found")
def recalls_what_was_cleared(patch: pytest.MonkeyPatch) -> None:
    from chatkeep.storage.runner import Call
    from chatkeep.vectors import index

    patch.setattr(index, "_context_start", lambda calls, name: Call(lambda _: 0, repeatable=True))
