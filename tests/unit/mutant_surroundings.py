"""Mutants that break what is around the contents: ids, time, connections, expiry, owners, directory (C13 to C24)."""

import datetime as dt
import logging
import random
import time
import unicodedata
from typing import Any

import msgspec
import pytest

# Each module that is patched is imported here: one that only the inner run imported would be another module here.
from chatkeep import config
from chatkeep.backends.inprocess import plugin, store
from chatkeep.backends.inprocess.store import InProcessBackend
from chatkeep.errors import ContentionError
from chatkeep.repository import RepositoryBase
from chatkeep.storage import codec, repository, runner
from chatkeep.storage.backend import Write
from chatkeep.storage.record import MessageRecord, Purged, Ttl
from tests.unit.mutants import ChangesRecords, caught_by, changed

# --- C13 identity, C14 time ---


class ChangesIds(InProcessBackend):
    def same(self, conversation_id: str) -> str:
        raise NotImplementedError

    def _get(self, owner: str, conversation_id: str) -> Any:
        for (of, name), conversation in self._space.conversations.items():
            if of == owner and self.same(name) == self.same(conversation_id):
                return conversation
        return None


@caught_by("TestC13Identity::test_two_ids_are_two_conversations")
class IgnoresCase(ChangesIds):
    def same(self, conversation_id: str) -> str:
        return conversation_id.casefold()


@caught_by("TestC13Identity::test_two_ids_are_two_conversations")
class Normalises(ChangesIds):
    def same(self, conversation_id: str) -> str:
        return unicodedata.normalize("NFC", conversation_id)


@caught_by("TestC13Identity::test_odd_ids_are_ids_like_others")
class TakesIdsForPatterns(InProcessBackend):
    def delete(self, owner: str, conversation_id: str) -> bool:
        if conversation_id == "%":
            for key in [key for key in self._space.conversations if key[0] == owner]:
                del self._space.conversations[key]
            return True
        return super().delete(owner, conversation_id)


@caught_by("TestC13Identity::test_what_is_no_id_is_refused_by_every_call")
def has_a_default_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(repository, "check_conversation_id", lambda value: value or "default")


@caught_by("TestC14Time::test_times_do_not_depend_on_zones")
class StoresLocalTime(ChangesRecords):
    def damage(self, records: list[MessageRecord]) -> list[MessageRecord]:
        return changed(
            records,
            created_at=lambda record: record.created_at + dt.timedelta(seconds=-time.timezone) * record_year(record),
        )


def record_year(record: MessageRecord) -> int:
    """0 at the ends of the calendar, where an offset would overflow."""
    return int(1000 < record.created_at.year < 9999)


@caught_by("TestC14Time::test_times_do_not_depend_on_zones")
class CutsToSeconds(ChangesRecords):
    def damage(self, records: list[MessageRecord]) -> list[MessageRecord]:
        return changed(records, created_at=lambda record: record.created_at.replace(microsecond=0))


@caught_by("TestC14Time::test_the_creation_time_of_a_conversation_never_changes")
class CreatesAgain(InProcessBackend):
    def _touched(self, record: Any) -> Any:
        return msgspec.structs.replace(super()._touched(record), created_at=store._now())


# --- C15 connections, C16 fresh reads, C17 contention ---


@caught_by("TestC15Closing::test_a_closed_repository_says_so")
def stays_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RepositoryBase, "_check_open", lambda self: None)


@caught_by("TestC15Connections::test_repositories_do_not_leak")
class LeaksFiles(InProcessBackend):
    leaked: list[Any] = []  # noqa: RUF012 (that it is shared is the leak)

    def count_messages(self, owner: str, conversation_id: str) -> int:
        if len(self.leaked) < 50:
            self.leaked.append(open("/dev/null"))  # noqa: SIM115, PTH123
        return super().count_messages(owner, conversation_id)


@caught_by("TestC16FreshReads::test_two_repositories_see_each_others_appends")
class CachesReads(InProcessBackend):
    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        cache = self.__dict__.setdefault("cache", {})
        key = (owner, conversation_id, limit)
        if key not in cache:
            cache[key] = super().find_messages(owner, conversation_id, limit)
        return list(cache[key])

    def append(self, write: Write, *, reconcile: bool = False) -> int:
        self.__dict__.pop("cache", None)
        return super().append(write)


@caught_by("TestC16NoAliasing::test_directory_values_are_not_shared")
def shares_parsed_json(patch: pytest.MonkeyPatch) -> None:
    real, parsed = codec.load_json, {}

    def load_json(text: str) -> Any:
        if text not in parsed:
            parsed[text] = real(text)
        return parsed[text]

    patch.setattr(codec, "load_json", load_json)


class FailsWhenBusy(InProcessBackend):
    def append(self, write: Write, *, reconcile: bool = False) -> int:
        if random.random() < 0.05:
            raise ContentionError("busy", backend=self.name)
        return super().append(write)


@caught_by("TestC17Contention::test_a_hot_key_takes_all_writers")
def shows_contention_to_the_caller(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plugin, "InProcessBackend", FailsWhenBusy)
    patch.setattr(runner, "may_retry", lambda error, repeatable: False)


@caught_by("TestC17Retries::test_a_passing_failure_is_retried")
def never_retries(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(runner, "may_retry", lambda error, repeatable: False)


@caught_by("TestC17Retries::test_other_errors_are_not_retried")
def retries_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(runner, "may_retry", lambda error, repeatable: isinstance(error, Exception))


# --- C19 URLs ---


@caught_by("TestC19Urls::test_an_unknown_option_is_refused_with_the_known")
def passes_over_unknown_options(patch: pytest.MonkeyPatch) -> None:
    real = config._parsed
    patch.setattr(config, "_parsed", lambda known, name, *rest: real(known, name, *rest) if name in known else None)


@caught_by("TestC19Urls::test_an_unknown_scheme_is_refused_with_the_known")
def guesses_the_backend(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(config, "find_backend", lambda scheme: plugin.BACKEND)


# --- C20 delete and expiry ---


@caught_by("TestC20Delete::test_nothing_of_a_deleted_conversation_is_readable")
class LeavesAGhost(InProcessBackend):
    def delete(self, owner: str, conversation_id: str) -> bool:
        conversation = self._get(owner, conversation_id)
        if conversation is not None:
            conversation.messages.clear()
        return conversation is not None


@caught_by("TestC20Delete::test_deleting_is_idempotent")
class DeletesEverybody(InProcessBackend):
    def delete(self, owner: str, conversation_id: str) -> bool:
        found = super().delete(owner, conversation_id)
        self._space.conversations.clear()
        return found


@caught_by(
    "TestC20Delete::test_versions_and_positions_are_never_used_again",
    "TestC20Delete::test_a_page_asked_for_before_a_deletion_finds_nothing_after_it",
)
class CountsFromOneAgain(InProcessBackend):
    def delete(self, owner: str, conversation_id: str) -> bool:
        self._space.numbers = store.itertools.count(1)
        return super().delete(owner, conversation_id)


@caught_by("TestC20Expiry::test_a_message_lives_its_second", "TestC20Expiry::test_the_living_stay_among_the_expired")
class IgnoresExpiry(InProcessBackend):
    def _placed(self, record: MessageRecord, expires_at: Any) -> MessageRecord:
        return super()._placed(record, None)


@caught_by("TestC20Expiry::test_a_message_lives_its_second")
class CountsTheExpired(InProcessBackend):
    def count_messages(self, owner: str, conversation_id: str) -> int:
        conversation = self._get(owner, conversation_id)
        return 0 if conversation is None else len(conversation.messages)


@caught_by("TestC20Expiry::test_a_replacement_keeps_the_expiry_of_stored_ids")
class ProlongsOnReplacement(InProcessBackend):
    def replace(self, write: Write) -> int:
        return super().replace(msgspec.structs.replace(write, ttl=Ttl(write.ttl.life, explicit=True)))


@caught_by("TestC20PurgeExpired::test_a_purge_removes_the_expired_alone")
class OnlySaysItPurged(InProcessBackend):
    def purge_expired(self, owner: str, *arguments: Any) -> Purged:
        return super().purge_expired(owner, *arguments[:-1], True)


@caught_by(
    "TestC20PurgeExpired::test_a_purge_stays_with_its_owner", "TestC20PurgeIdle::test_a_purge_stays_with_its_owner"
)
class PurgesAllOwners(InProcessBackend):
    def purge_expired(self, owner: str, *arguments: Any) -> Purged:
        found = [super(PurgesAllOwners, self).purge_expired(of, *arguments) for of in self.owners()]
        return Purged(sum(each.messages for each in found), sum(each.conversations for each in found))

    def purge_idle(self, owner: str, *arguments: Any) -> Purged:
        found = [super(PurgesAllOwners, self).purge_idle(of, *arguments) for of in self.owners()]
        return Purged(sum(each.messages for each in found), sum(each.conversations for each in found))

    def owners(self) -> set[str]:
        return {owner for owner, _ in self._space.conversations}


# --- C21 injection, secrets, owners ---


@caught_by("TestC21Injection::test_templates_never_parse_user_text")
def parses_user_text(patch: pytest.MonkeyPatch) -> None:
    real = store.message_id_taken

    def message_id_taken(message_id: str, conversation_id: str) -> Exception:
        error = real(message_id, conversation_id)
        return type(error)(str(error).format(message_id=message_id))

    patch.setattr(store, "message_id_taken", message_id_taken)


@caught_by("TestC21Secrets::test_nothing_shown_holds_message_content")
class LogsContent(InProcessBackend):
    def append(self, write: Write, *, reconcile: bool = False) -> int:
        logging.getLogger("chatkeep.inprocess").debug("append %s", write.records)
        return super().append(write)


@caught_by(
    "TestC21Owners::test_no_read_sees_another_owner_s_data", "TestC21Owners::test_no_write_changes_another_owner_s_data"
)
class IgnoresOwners(InProcessBackend):
    def _get(self, owner: str, conversation_id: str) -> Any:
        for (_, name), conversation in self._space.conversations.items():
            if name == conversation_id:
                return conversation
        return None


@caught_by("TestC21Owners::test_the_nameless_owner_is_an_owner")
class ShowsEverythingToNobody(InProcessBackend):
    def find_conversation_ids(self, owner: str) -> list[str]:
        return sorted(name for of, name in self._space.conversations if owner in ("", of))


# --- C23 bounded cost, C24 ready, capabilities, directory ---


@caught_by("TestC23BoundedCost::test_a_long_conversation_is_as_quick_as_a_short_one")
class ReadsTheWhole(InProcessBackend):
    def find_messages(self, owner: str, conversation_id: str, limit: int | None) -> list[MessageRecord]:
        found = [msgspec.structs.replace(row) for row in super().find_messages(owner, conversation_id, None)]
        return found if limit is None else found[-limit:]


@caught_by("TestC24Ready::test_namespaces_do_not_meet")
def has_one_namespace_for_all(patch: pytest.MonkeyPatch) -> None:
    space = store.Space()
    patch.setattr(plugin, "InProcessBackend", lambda _: InProcessBackend(space))


@caught_by(
    "TestCapabilities::test_the_backend_declares_what_the_harness_expects",
    "TestCapabilities::test_what_is_not_declared_is_refused",
)
class DeclaresLess(InProcessBackend):
    capabilities = msgspec.structs.replace(InProcessBackend.capabilities, ttl=False)


@caught_by("TestCapabilities::test_the_backend_declares_what_the_harness_expects")
class DeclaresMore(InProcessBackend):
    capabilities = msgspec.structs.replace(InProcessBackend.capabilities, durable=True)


@caught_by("TestUpdateConversation::test_writes_of_messages_keep_title_and_metadata")
class ForgetsTheTitle(InProcessBackend):
    def replace(self, write: Write) -> int:
        self.delete(write.owner, write.conversation_id)
        return super().replace(write)


@caught_by("TestUpdateConversation::test_messages_version_and_times_stay")
class TakesATitleForActivity(InProcessBackend):
    def update_conversation(self, owner: str, conversation_id: str, *arguments: Any) -> Any:
        conversation = self._get(owner, conversation_id)
        if conversation is not None:
            conversation.record = self._touched(conversation.record)
        return super().update_conversation(owner, conversation_id, *arguments)


@caught_by("TestDirectory::test_pages_give_each_conversation_once")
class RepeatsTheLastOfAPage(InProcessBackend):
    def list_conversations(self, owner: str, order: Any, after: Any, limit: int) -> Any:
        found = super().list_conversations(owner, order, None, 10**6)
        names = [record.conversation_id for record in found]
        return found[0 if after is None else names.index(after.conversation_id) :][:limit] if found else []


@caught_by("TestDirectory::test_the_last_changed_comes_first", "TestDirectory::test_pages_give_each_conversation_once")
class ListsTheOldestFirst(InProcessBackend):
    def list_conversations(self, owner: str, order: Any, after: Any, limit: int) -> Any:
        return super().list_conversations(owner, order, after, limit)[::-1]
