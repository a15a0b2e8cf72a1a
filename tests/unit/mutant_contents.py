"""Mutants that break what a conversation holds: order, atomicity, repeats, contents (C1 to C12)."""

import json
import random
import time
from typing import Any

import msgspec
import pytest

from chatkeep import Message
from chatkeep.backends.inprocess.store import InProcessBackend
from chatkeep.errors import StoredDataError
from chatkeep.storage import checks, codec
from chatkeep.storage.backend import Write
from chatkeep.storage.record import MessageRecord
from tests.unit.mutants import ChangesBodies, ChangesRecords, caught_by, changed

# --- C1 order ---


@caught_by("TestC01Order::test_timestamps_of_messages_order_nothing")
class OrdersByTime(InProcessBackend):
    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        found = super().find_messages(owner, conversation_id, limit)
        return sorted(found, key=lambda record: record.created_at)


@caught_by("TestC01Order::test_ids_order_nothing")
class OrdersById(InProcessBackend):
    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        return sorted(super().find_messages(owner, conversation_id, limit), key=lambda record: record.message_id)


@caught_by("TestC01Order::test_a_limit_gives_the_newest_oldest_first")
class LimitsToTheOldest(InProcessBackend):
    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        return super().find_messages(owner, conversation_id, None)[:limit]


@caught_by("TestC01History::test_pages_backward_give_each_message_once")
class PagesBackwardFromTheStart(InProcessBackend):
    def history(self, owner: str, conversation_id: str, after: Any, before: Any, limit: int) -> list[MessageRecord]:
        return super().history(owner, conversation_id, after or 0, before, limit)


@caught_by("TestC01Order::test_a_limit_that_is_no_whole_number_is_a_type_error")
def takes_any_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checks, "check_limit", lambda limit, name="limit": int(limit))


# --- C2 atomic replace ---


@caught_by("TestC02AtomicReplace::test_a_reader_sees_the_old_list_or_the_new_one")
class DeletesThenInserts(InProcessBackend):
    def replace(self, write: Write) -> int:
        super().replace(msgspec.structs.replace(write, records=[]))
        time.sleep(0.001)
        return super().replace(write)


@caught_by("TestC02AtomicReplace::test_a_write_that_fails_at_any_step_changes_nothing")
class ReplacesRowByRow(InProcessBackend):
    def replace(self, write: Write) -> int:
        version = super().replace(msgspec.structs.replace(write, records=[]))
        for record in write.records:
            version = super().append(msgspec.structs.replace(write, records=[record], expected_version=None))
        return version


# --- C3 no lost append ---


@caught_by("TestC03NoLostAppend::test_parallel_appends_of_several_repositories_all_survive")
class ReadsModifiesWrites(InProcessBackend):
    def append(self, write: Write, *, reconcile: bool = False) -> int:
        stored = self.find_messages(write.owner, write.conversation_id, None)
        time.sleep(0.0005)
        return super().replace(msgspec.structs.replace(write, records=[*stored, *write.records]))


@caught_by(
    "TestC03NoLostAppend::test_parallel_appends_of_several_repositories_all_survive",
    "TestC02AtomicReplace::test_a_reader_sees_all_of_an_append_or_nothing",
)
class AppendsOneByOne(InProcessBackend):
    def append(self, write: Write, *, reconcile: bool = False) -> int:
        version = 0
        for record in write.records:
            version = super().append(msgspec.structs.replace(write, records=[record]))
            time.sleep(0.0005)
        return version


@caught_by("TestC03ConditionalWrites")
class IgnoresVersions(InProcessBackend):
    def _check_version(self, write: Write, conversation: Any) -> None:
        return


@caught_by("TestC03ConditionalWrites::test_one_of_many_who_saw_the_same_version_wins")
class ChecksThenActs(InProcessBackend):
    def replace(self, write: Write) -> int:
        self._check_version(write, self._get(write.owner, write.conversation_id))
        time.sleep(0.0005)
        return super().replace(msgspec.structs.replace(write, expected_version=None))


# --- C4 idempotence ---


@caught_by("TestC04Idempotence::test_another_content_under_a_stored_id_is_refused")
class OverwritesStoredIds(InProcessBackend):
    def _unstored(self, conversation: Any, write: Write, context_start: int) -> list[MessageRecord]:
        return write.records


@caught_by(
    "TestC04Idempotence::test_an_append_repeated_stores_nothing_more",
    "TestC04LostReply::test_a_lost_append_is_repeated_and_stored_once",
)
class StoresRepeatsAgain(ChangesRecords):
    def damage(self, records: list[MessageRecord]) -> list[MessageRecord]:
        return changed(records, message_id=lambda record: f"{record.message_id[:200]}-{random.random()}")


@caught_by("TestC04Idempotence::test_replacing_twice_is_replacing_once")
class ReplacesByAppending(InProcessBackend):
    def replace(self, write: Write) -> int:
        return super().append(write) if write.records else super().replace(write)


# --- C7 log is whole ---


@caught_by("TestC07LogIsWhole::test_a_window_deletes_nothing")
class EvictsWhatAWindowHides(InProcessBackend):
    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        found = super().find_messages(owner, conversation_id, limit)
        kept = {record.message_id for record in found}
        conversation = self._get(owner, conversation_id)
        if conversation is not None and limit is not None:
            conversation.messages = {name: row for name, row in conversation.messages.items() if name in kept}
        return found


# --- C8 to C12: what is stored comes back ---


@caught_by("TestC08Lossless::test_none_and_empty_stay_apart")
class TakesEmptyForNone(ChangesBodies):
    def body(self, body: str) -> str:
        return body.replace(',"name":""', "")


@caught_by("TestC08Lossless::test_order_of_metadata_keys_is_kept")
class SortsKeys(ChangesBodies):
    def body(self, body: str) -> str:
        return json.dumps(json.loads(body), sort_keys=True)


@caught_by("TestC08Lossless::test_every_kind_of_message_comes_back_equal")
class DropsUnknownFields(ChangesBodies):
    def body(self, body: str) -> str:
        return body.replace('"cache_control"', '"unused"')


@caught_by("TestC08Lossless::test_generated_messages_come_back_equal_from_append")
class LosesEmptyObjects(ChangesBodies):
    def body(self, body: str) -> str:
        return body.replace("[]", "null").replace("{}", "null").replace('"parts":null', '"parts":[]')


@caught_by("TestC09Types::test_values_of_metadata_keep_their_type")
class NarrowsFloats(ChangesBodies):
    def body(self, body: str) -> str:
        return json.dumps(json.loads(body, parse_float=lambda text: int(float(text)) if text[-2:] == ".0" else text))


@caught_by("TestC09Types::test_values_of_metadata_keep_their_type")
class CutsIntegers(ChangesBodies):
    def body(self, body: str) -> str:
        return json.dumps(json.loads(body, parse_int=lambda text: int(text) & 0xFFFFFFFFFFFFFFFF))


@caught_by("TestC10SafeLoading", "TestC10SafeLoading::test_one_broken_row_breaks_nothing_else")
def skips_what_it_cannot_read(patch: pytest.MonkeyPatch) -> None:
    real = codec.decode

    def decode(*arguments: Any, **options: Any) -> Any:
        try:
            return real(*arguments, **options)
        except StoredDataError:
            return Message.assistant()

    def count(self: InProcessBackend, owner: str, conversation_id: str) -> int:
        return len([codec.decode(row, conversation_id) for row in self.find_messages(owner, conversation_id, None)]) - 1

    patch.setattr(codec, "decode", decode)
    patch.setattr(InProcessBackend, "count_messages", count)


@caught_by("TestC11NothingCut::test_a_text_of_any_allowed_size_comes_back_whole")
class CutsText(ChangesRecords):
    def damage(self, records: list[MessageRecord]) -> list[MessageRecord]:
        return changed(records, content=lambda record: record.content.encode()[:65_535].decode(errors="ignore"))


@caught_by("TestC11NothingCut::test_above_the_limit_both_numbers_are_told_before_any_statement")
def has_no_limit(patch: pytest.MonkeyPatch) -> None:
    real = codec.encode
    patch.setattr(codec, "encode", lambda message, path, limit: real(message, path, 10**12))


@caught_by("TestC12AnyStr::test_any_text_survives_everywhere")
class DropsNul(ChangesBodies):
    def body(self, body: str) -> str:
        return body.replace("\\u0000", "")


@caught_by(
    "TestC12AnyStr::test_any_text_survives_everywhere", "TestC12AnyStr::test_the_stored_text_can_be_read_by_people"
)
class TrimsText(ChangesRecords):
    def damage(self, records: list[MessageRecord]) -> list[MessageRecord]:
        return changed(records, content=lambda record: record.content.rstrip(" "))
