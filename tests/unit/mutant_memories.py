"""Mutants of what memories stand on: the rules of windows, the context of the backend, counts and evictions."""

import time
from typing import Any

import msgspec
import pytest

from chatkeep.backends.inprocess.store import InProcessBackend
from chatkeep.memory import groups, operations, window
from chatkeep.message import Message
from chatkeep.storage.backend import Write
from chatkeep.storage.record import ContextRecord
from tests.unit.mutants import caught_by

# --- C5 a window is a valid prompt ---


@caught_by("TestC05ValidPrompt::test_a_view_is_valid_for_every_limit")
def shows_calls_without_results(patch: pytest.MonkeyPatch) -> None:
    real = groups._paired

    def paired(messages: Any) -> Any:
        calls, last = real(messages)
        return [call for call in calls if call.answer is not None], last

    patch.setattr(groups, "_paired", paired)


@caught_by("TestC05ValidPrompt::test_a_view_is_valid_for_every_limit")
def starts_anywhere(patch: pytest.MonkeyPatch) -> None:
    real = groups.groups_of

    def all_lead(messages: Any) -> Any:
        return [msgspec.structs.replace(group, leads=True) for group in real(messages)]

    patch.setattr(window, "groups_of", all_lead)


@caught_by("TestC05ValidPrompt::test_a_turn_longer_than_the_window_keeps_its_question")
class ReadsNothingBeforeTheFirstBlock(InProcessBackend):
    def find_context(self, owner: str, conversation_id: str, limit: int, before: int | None = None) -> ContextRecord:
        found = super().find_context(owner, conversation_id, limit, before)
        return found if before is None else msgspec.structs.replace(found, messages=[])


@caught_by("TestC05ValidPrompt::test_the_system_message_is_found_at_any_distance")
class LooksForTheSystemMessageInTheWindow(InProcessBackend):
    def find_context(self, owner: str, conversation_id: str, limit: int, before: int | None = None) -> ContextRecord:
        found = super().find_context(owner, conversation_id, limit, before)
        return found if found.system in found.messages else msgspec.structs.replace(found, system=None)


@caught_by("TestC05ValidPrompt::test_a_deleted_system_message_brings_no_older_one_back")
class FindsAnOlderSystemMessage(InProcessBackend):
    def find_context(self, owner: str, conversation_id: str, limit: int, before: int | None = None) -> ContextRecord:
        found = super().find_context(owner, conversation_id, limit, before)
        systems = [record for record in found.messages if record.role == "system"]
        return msgspec.structs.replace(found, system=systems[-1] if systems else found.system)


# --- C6 token budgets ---


@caught_by("TestC06TokenBudgets::test_each_message_is_counted_once")
class ForgetsCounts(InProcessBackend):
    def store_token_counts(self, owner: str, conversation_id: str, estimator: str, counts: dict[int, int]) -> None:
        return


@caught_by("TestC06TokenBudgets::test_another_estimator_counts_anew")
def takes_any_estimator_s_counts(patch: pytest.MonkeyPatch) -> None:
    from chatkeep.memory import token_window

    patch.setattr(token_window, "estimator_key", lambda estimator: "the/same")


@caught_by("TestC06TokenBudgets::test_the_view_fits_the_budget_or_is_the_least")
def forgets_the_system_message_s_tokens(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(window.Tokens, "of_system", lambda self, message: 0)


@caught_by("TestC06TokenBudgets::test_a_budget_is_filled_backwards_in_blocks")
def reads_the_whole_for_a_budget(patch: pytest.MonkeyPatch) -> None:
    from chatkeep.memory import token_window

    patch.setattr(token_window.TokenKind, "first", lambda self, limit: 10**6)


# --- C7 memories ---


@caught_by("TestC07Keep::test_clear_empties_the_view_and_not_the_log")
class ClearsByDeleting(InProcessBackend):
    def append(self, write: Write, *, reconcile: bool = False) -> int:
        if write.context == "restart":
            return self.replace(msgspec.structs.replace(write, context="ignore"))
        return super().append(write, reconcile=reconcile)


@caught_by("TestC07Keep::test_a_message_that_left_may_be_added_again")
class MovesNothing(InProcessBackend):
    def append(self, write: Write, *, reconcile: bool = False) -> int:
        plain = write if write.context == "restart" else msgspec.structs.replace(write, context="ignore")
        return super().append(plain, reconcile=reconcile)


@caught_by("TestC07Keep::test_a_message_that_left_may_be_added_again")
class MovesForEverybody(InProcessBackend):
    def append(self, write: Write, *, reconcile: bool = False) -> int:
        moving = msgspec.structs.replace(write, context="extend") if write.context == "ignore" else write
        return super().append(moving, reconcile=reconcile)


@caught_by("TestC07Keep::test_upcoming_messages_are_looked_at_and_not_stored")
def takes_upcoming_messages_twice(patch: pytest.MonkeyPatch) -> None:
    real = operations.KeepOperations._view_over

    def doubled(self: Any, context: Any, new: list[Message], limit: int, counts: dict[str, int]) -> Any:
        return real(self, context, [*context.messages[-2:], *new], limit, counts)

    patch.setattr(operations.KeepOperations, "_view_over", doubled)


@caught_by("TestC07Delete::test_exactly_the_view_stays_stored")
def deletes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operations.DeleteOperations, "_add", operations.KeepOperations._add)


@caught_by("TestC07Delete::test_parallel_additions_all_arrive")
class StoresWhatOthersChanged(InProcessBackend):
    def replace(self, write: Write) -> int:
        return super().replace(msgspec.structs.replace(write, expected_version=None))

    def append(self, write: Write, *, reconcile: bool = False) -> int:
        if write.expected_version is None:
            return super().append(write, reconcile=reconcile)
        stored = self.find_messages(write.owner, write.conversation_id, None) if write.expected_version else []
        time.sleep(0.0005)
        return self.replace(msgspec.structs.replace(write, records=[*stored, *write.records]))


@caught_by("TestC07Delete::test_a_group_that_is_being_answered_stays")
def forgets_the_open_group(patch: pytest.MonkeyPatch) -> None:
    real = window.turn_view

    def without(*arguments: Any, **options: Any) -> Any:
        view = real(*arguments, **options)
        return view and msgspec.structs.replace(view, answering=[])

    from chatkeep.memory import rules

    patch.setattr(rules, "turn_view", without)
