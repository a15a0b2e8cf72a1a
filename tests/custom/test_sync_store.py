"""A synchronous store of four verbs behind ChatMemoryRepository."""

import contextlib
import datetime as dt
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest

from chatkeep import (
    Capabilities,
    ChatMemoryRepository,
    ConcurrentChangeError,
    ConfigurationError,
    ContentionError,
    InvalidMessageError,
    Message,
    MessageTooLargeError,
    Outcome,
    RepositoryClosedError,
    StorageError,
    StoredDataError,
    UnsupportedOperationError,
)
from chatkeep.custom import ChatMemoryStore, repository_over
from tests.custom.stores import AsyncDictStore, ConditionalDictStore, DictStore


def said(count: int, prefix: str = "line") -> list[Message]:
    return [Message.user(f"{prefix} {number}") for number in range(count)]


def test_every_method_of_the_repository_works_over_four_verbs() -> None:
    messages = said(5)
    with repository_over(DictStore()) as repository:
        assert type(repository) is ChatMemoryRepository
        assert repository.backend == "DictStore"
        version = repository.append("thread", messages[:3])
        assert repository.append("thread", messages[3:]) > version
        assert repository.find_conversation_ids() == ["thread"]
        assert repository.find_by_conversation_id("thread") == messages
        assert repository.find_by_conversation_id("thread", limit=2) == messages[-2:]
        assert repository.count_messages("thread") == 5
        assert [entry.message for entry in repository.history("thread", limit=3).items] == messages[:3]
        assert repository.delete_messages("thread", [messages[0].id, "unknown"]) == 1
        conversation = repository.get_conversation("thread")
        assert conversation is not None
        assert conversation.message_count == 4
        assert [entry.id for entry in repository.list_conversations().items] == ["thread"]
        repository.save_all("thread", messages[:1])
        assert repository.find_by_conversation_id("thread") == messages[:1]
        assert repository.delete_by_conversation_id("thread") is True
        assert repository.delete_by_conversation_id("thread") is False
        assert repository.get_conversation("thread") is None


@pytest.mark.parametrize(
    ("capability", "call"),
    [
        ("conversation_metadata", lambda repository: repository.update_conversation("thread", title="x")),
        ("conditional_writes", lambda repository: repository.append("thread", said(1), expected_version=0)),
        ("conditional_writes", lambda repository: repository.save_all("thread", said(1), expected_version=0)),
        ("ttl", lambda repository: repository.append("thread", said(1), ttl=dt.timedelta(1))),
        ("purge", lambda repository: repository.purge_expired()),
        ("purge", lambda repository: repository.purge_idle(dt.timedelta(1))),
    ],
)
def test_what_is_not_claimed_is_refused_by_name(capability: str, call: Any) -> None:
    store = DictStore()
    with repository_over(store) as repository:
        assert repository.capabilities == Capabilities()
        with pytest.raises(UnsupportedOperationError, match=capability):
            call(repository)
        assert store.saved == {}


@pytest.mark.parametrize(
    ("claims", "named"),
    [
        ({"ttl": True}, "ttl"),
        ({"purge": True}, "purge"),
        ({"conversation_metadata": True}, "conversation_metadata"),
        ({"stable_positions": True}, "stable_positions"),
        ({"native_expiry": True}, "native_expiry"),
        ({"bounded_cost": True}, "bounded_cost"),
        ({"native_async": True}, "native_async"),
        ({"shared_between_processes": True, "conditional_writes": True}, "conditional_writes"),
        ({"shared_between_processes": True, "concurrent_appends": True}, "concurrent_appends"),
    ],
)
def test_a_claim_that_four_verbs_cannot_keep_is_refused_at_opening(claims: dict[str, bool], named: str) -> None:
    store = DictStore()
    store.capabilities = Capabilities(**claims)
    with pytest.raises(ConfigurationError, match=named):
        repository_over(store)


def test_capabilities_must_be_capabilities() -> None:
    store = DictStore()
    store.capabilities = {"durable": True}  # type: ignore[assignment]
    with pytest.raises(ConfigurationError, match="Capabilities"):
        repository_over(store)


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ChatMemoryStore"):
        repository_over({})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="async_repository_over"):
        repository_over(AsyncDictStore())  # type: ignore[arg-type]


def test_owners_never_meet_and_their_keys_cannot_be_ids() -> None:
    store = DictStore()
    root = repository_over(store)
    handles = [root.for_owner(owner) for owner in ("ann", "bob", "an", "ann ann")]
    root.append("n", said(1, "root"))
    for handle in handles:
        handle.append("n", said(2, handle.owner))
        handle.append(f"only-{handle.owner}", said(1))
    assert root.find_conversation_ids() == ["n"]
    for handle in handles:
        assert handle.find_conversation_ids() == sorted(["n", f"only-{handle.owner}"])
        assert [message.text for message in handle.find_by_conversation_id("n")] == [
            f"{handle.owner} 0",
            f"{handle.owner} 1",
        ]
    assert handles[0].delete_by_conversation_id("n") is True
    assert [handle.count_messages("n") for handle in (root, *handles)] == [1, 0, 2, 2, 2]
    with pytest.raises(ValueError, match="control"):
        root.append("ann\x1fn", said(1))


def test_a_conditional_write_is_checked_and_applied_as_one_step() -> None:
    with repository_over(ConditionalDictStore()) as repository:
        version = repository.append("thread", said(1), expected_version=0)
        with pytest.raises(ConcurrentChangeError) as caught:
            repository.save_all("thread", [], expected_version=0)
        assert (caught.value.expected, caught.value.actual) == (0, version)
        won = []

        def write(number: int) -> None:
            with contextlib.suppress(ConcurrentChangeError):
                won.append(repository.append("thread", said(1, str(number)), expected_version=version))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert repository.count_messages("thread") == 2


def test_versions_and_positions_are_never_used_again_in_a_process() -> None:
    with repository_over(DictStore()) as repository:
        versions, positions = [], set()
        for _ in range(20):
            versions.append(repository.append("thread", said(3)))
            versions.append(repository.save_all("thread", said(2)))
            new = {entry.position for entry in repository.history("thread").items}
            assert not new & positions
            positions |= new
            repository.delete_messages("thread", [repository.find_by_conversation_id("thread")[-1].id])
            versions.append(repository.append("thread", said(1)))
            last = repository.history("thread").items[-1].position
            assert last not in positions
            positions.add(last)
            repository.delete_by_conversation_id("thread")
        assert versions == sorted(set(versions))


def test_positions_stay_while_others_append_and_delete() -> None:
    messages = said(6)
    with repository_over(DictStore()) as repository:
        repository.append("thread", messages[:4])
        before = {entry.message.id: entry.position for entry in repository.history("thread").items}
        page = repository.history("thread", limit=2)
        repository.delete_messages("thread", [messages[0].id])
        repository.append("thread", messages[4:])
        after = {entry.message.id: entry.position for entry in repository.history("thread").items}
        assert all(after[message.id] == before[message.id] for message in messages[1:4])
        rest = repository.history("thread", after=page.next_cursor)
        assert [entry.message for entry in rest.items] == messages[2:]
        newest = repository.history("thread", before=after[messages[5].id], limit=2)
        assert [entry.message for entry in newest.items] == messages[3:5]


def test_a_change_behind_the_repository_gives_a_new_version() -> None:
    store = DictStore()
    with repository_over(store) as repository:
        version = repository.append("thread", said(2))
        positions = [entry.position for entry in repository.history("thread").items]
        store.saved["thread"] = [*store.saved["thread"], Message.user("from elsewhere")]
        grown = repository.append("thread", [])
        assert grown > version
        assert [entry.position for entry in repository.history("thread").items][:2] == positions
        store.saved["thread"] = store.saved["thread"][1:]
        assert repository.append("thread", []) > grown
        assert not set(positions) & {entry.position for entry in repository.history("thread").items}


def test_two_repositories_over_one_store_share_lock_and_versions() -> None:
    store = ConditionalDictStore()
    one, two = repository_over(store), repository_over(store)
    version = one.append("thread", said(1))
    assert two.append("thread", []) == version
    assert two.append("thread", said(1), expected_version=version) > version
    with pytest.raises(ConcurrentChangeError):
        one.append("thread", said(1), expected_version=version)


def test_no_two_verbs_run_at_once_unless_the_store_is_parallel() -> None:
    class Watching(DictStore):
        busy, most = 0, 0
        count = threading.Lock()

        def save_all(self, conversation_id: str, messages: list[Message]) -> None:
            with self.count:
                self.busy += 1
                self.most = max(self.most, self.busy)
            time.sleep(0.02)
            with self.count:
                self.busy -= 1
            super().save_all(conversation_id, messages)

    class WatchingParallel(Watching):
        parallel = True

    for kind, expected in ((Watching, range(1, 2)), (WatchingParallel, range(2, 17))):
        store = kind()
        with repository_over(store) as repository:
            threads = [
                threading.Thread(target=repository.append, args=(f"thread-{number // 2}", said(1, str(number))))
                for number in range(16)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert store.most in expected
            assert sum(repository.count_messages(f"thread-{number}") for number in range(8)) == 16


def test_nothing_is_shared_between_caller_and_store() -> None:
    store = DictStore()
    message = Message.user("Hi", metadata={"list": [1]})
    given = [message]
    with repository_over(store) as repository:
        repository.append("thread", given)
        given.append(Message.user("later"))
        message.metadata["list"].append(2)
        found = repository.find_by_conversation_id("thread")
        assert [each.metadata for each in found] == [{"list": [1]}]
        found[0].metadata["list"].append(3)
        found.clear()
        assert [each.metadata for each in repository.find_by_conversation_id("thread")] == [{"list": [1]}]
        assert [each.metadata for each in store.saved["thread"]] == [{"list": [1]}]


def test_a_store_may_append_by_itself() -> None:
    class Appending(DictStore):
        capabilities = Capabilities(concurrent_appends=True, shared_between_processes=True)
        appended: list[list[str]]

        def append(self, conversation_id: str, messages: list[Message]) -> None:
            self.appended.append([message.text for message in messages])
            self.saved.setdefault(conversation_id, []).extend(messages)

    store = Appending()
    store.appended = []
    messages = said(3)
    with repository_over(store) as repository:
        repository.append("thread", messages[:2])
        repository.append("thread", messages)  # two of them are stored already
        assert store.appended == [["line 0", "line 1"], ["line 2"]]
        assert repository.find_by_conversation_id("thread") == messages


def test_the_default_append_saves_the_whole_list() -> None:
    store = DictStore()
    messages = said(3)
    store.append("thread", messages[:2])
    store.append("thread", messages[2:])
    assert store.saved["thread"] == messages


class Failing(DictStore):
    fails_in = ""
    error: Exception = RuntimeError("secret text of a message")

    def _maybe(self, verb: str) -> None:
        if verb == self.fails_in:
            raise self.error

    def find_conversation_ids(self) -> Iterable[str]:
        self._maybe("find_conversation_ids")
        return super().find_conversation_ids()

    def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
        self._maybe("find_by_conversation_id")
        return super().find_by_conversation_id(conversation_id)

    def save_all(self, conversation_id: str, messages: list[Message]) -> None:
        self._maybe("save_all")
        super().save_all(conversation_id, messages)

    def delete_by_conversation_id(self, conversation_id: str) -> None:
        self._maybe("delete_by_conversation_id")
        super().delete_by_conversation_id(conversation_id)


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        ("find_conversation_ids", Outcome.NOT_APPLIED),
        ("find_by_conversation_id", Outcome.NOT_APPLIED),
        ("save_all", Outcome.UNKNOWN),
        ("delete_by_conversation_id", Outcome.UNKNOWN),
    ],
)
def test_an_error_of_the_store_is_a_storage_error_with_its_cause(verb: str, outcome: Outcome) -> None:
    store = Failing()
    with repository_over(store) as repository:
        repository.append("thread", said(1))
        store.fails_in = verb
        calls: dict[str, Any] = {
            "find_conversation_ids": repository.find_conversation_ids,
            "find_by_conversation_id": lambda: repository.find_by_conversation_id("thread"),
            "save_all": lambda: repository.save_all("thread", said(1)),
            "delete_by_conversation_id": lambda: repository.delete_by_conversation_id("thread"),
        }
        with pytest.raises(StorageError, match=verb) as caught:
            calls[verb]()
        assert caught.value.__cause__ is store.error
        assert caught.value.outcome is outcome
        assert caught.value.backend == "Failing"
        assert "secret" not in str(caught.value)


def test_chatkeep_errors_of_the_store_pass_and_contention_is_retried() -> None:
    class Busy(DictStore):
        refusals = 2

        def save_all(self, conversation_id: str, messages: list[Message]) -> None:
            if self.refusals:
                self.refusals -= 1
                raise ContentionError("someone holds the lock")
            super().save_all(conversation_id, messages)

    store = Failing()
    store.fails_in, store.error = "find_by_conversation_id", StoredDataError("broken", conversation_id="x", position=3)
    with repository_over(store) as repository, pytest.raises(StoredDataError, match="broken"):
        repository.find_by_conversation_id("thread")
    busy = Busy()
    with repository_over(busy) as repository:
        repository.append("thread", said(2))
        assert repository.count_messages("thread") == 2
        assert busy.refusals == 0


@pytest.mark.parametrize("answer", [None, "text", b"bytes", {"a": 1}, [None], ["text"], [{"role": "user"}], 3])
def test_an_answer_that_is_no_list_of_messages_is_a_storage_error(answer: Any) -> None:
    class Wrong(DictStore):
        def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
            return answer  # type: ignore[no-any-return]

    with repository_over(Wrong()) as repository:
        with pytest.raises(StorageError, match="list of Message"):
            repository.find_by_conversation_id("thread")


def test_a_generator_that_breaks_is_translated_too() -> None:
    class Generating(DictStore):
        def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
            yield Message.user("fine")
            raise OSError("the disk")

    with repository_over(Generating()) as repository, pytest.raises(StorageError, match="OSError") as caught:
        repository.find_by_conversation_id("thread")
    assert isinstance(caught.value.__cause__, OSError)


def test_stored_dicts_that_are_no_messages_are_stored_data_errors_and_can_be_deleted() -> None:
    class Dicts(DictStore):
        def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
            return [Message.from_dict(each) for each in [{"role": "user", "parts": [{"type": "hologram"}]}]]

    store = Dicts()
    store.saved["thread"] = []
    with repository_over(store) as repository:
        with pytest.raises(StoredDataError, match="hologram") as caught:
            repository.find_by_conversation_id("thread")
        assert caught.value.conversation_id == "thread"
        assert repository.delete_by_conversation_id("thread") is True
        assert store.saved == {}


def test_messages_that_were_changed_in_the_store_beyond_storing_are_stored_data_errors() -> None:
    store = DictStore()
    with repository_over(store) as repository:
        repository.append("thread", Message.user("Hi", metadata={"a": 1}))
        store.saved["thread"][0].metadata["a"] = {1, 2}
        with pytest.raises(StoredDataError, match=r"metadata\.a"):
            repository.find_by_conversation_id("thread")


def test_checks_come_before_the_store_is_asked() -> None:
    store = Failing()
    store.fails_in, store.error = "find_by_conversation_id", AssertionError("asked")
    with repository_over(store) as repository:
        with pytest.raises(MessageTooLargeError):
            repository.append("thread", Message.user("x" * 70_000))  # the default claims 65,536 bytes
        with pytest.raises(TypeError):
            repository.append("thread", "text")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="control"):
            repository.append("a\nb", said(1))


def test_another_content_under_a_stored_id_is_refused_and_nothing_stored() -> None:
    store = DictStore()
    message = Message.user("one")
    with repository_over(store) as repository:
        version = repository.append("thread", message)
        assert repository.append("thread", message) == version
        with pytest.raises(InvalidMessageError, match="another content"):
            repository.append("thread", [Message.user("new"), Message.user("two", id=message.id)])
        assert store.saved["thread"] == [message]


def test_a_coroutine_method_in_a_synchronous_store_is_refused() -> None:
    class Mixed(DictStore):
        async def save_all(self, conversation_id: str, messages: list[Message]) -> None:  # type: ignore[override]
            raise AssertionError

    with repository_over(Mixed()) as repository, pytest.raises(ConfigurationError, match="AsyncChatMemoryStore"):
        repository.append("thread", said(1))


def test_a_store_that_is_a_frozen_dataclass_works() -> None:
    import dataclasses

    @dataclasses.dataclass(frozen=True)
    class Frozen(ChatMemoryStore):
        saved: dict[str, list[Message]]

        find_conversation_ids = DictStore.find_conversation_ids  # type: ignore[assignment]
        find_by_conversation_id = DictStore.find_by_conversation_id  # type: ignore[assignment]
        save_all = DictStore.save_all  # type: ignore[assignment]
        delete_by_conversation_id = DictStore.delete_by_conversation_id  # type: ignore[assignment]

    with repository_over(Frozen({})) as repository:
        repository.append("thread", said(2))
        assert repository.count_messages("thread") == 2


def test_closing_the_repository_closes_the_store_once() -> None:
    class Closing(DictStore):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    store = Closing()
    repository = repository_over(store)
    handle = repository.for_owner("ann")
    handle.close()
    assert store.closed == 0
    repository.close()
    repository.close()
    assert store.closed == 1
    with pytest.raises(RepositoryClosedError):
        repository.find_conversation_ids()


def test_the_directory_pages_by_id_and_by_change_and_is_dated() -> None:
    with repository_over(DictStore()) as repository:
        for name in ("c", "a", "d", "b"):
            repository.append(name, said(1))
        repository.save_all("empty", [])
        repository.append("a", said(1, "again"))
        for order, expected in (("id", ["a", "b", "c", "d", "empty"]), ("updated", ["a", "empty", "b", "d", "c"])):
            seen, cursor = [], None
            while True:
                page = repository.list_conversations(limit=2, cursor=cursor, order=order)  # type: ignore[arg-type]
                seen += page.items
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert [entry.id for entry in seen] == expected
        changed = repository.get_conversation("a")
        assert changed is not None
        assert changed.created_at < changed.updated_at


def test_a_conversation_met_for_the_first_time_is_dated_by_its_messages() -> None:
    store = DictStore()
    messages = said(3)
    store.saved["thread"] = messages
    with repository_over(store) as repository:
        found = repository.get_conversation("thread")
        assert found is not None
        assert (found.created_at, found.updated_at) == (messages[0].created_at, messages[2].created_at)
        repository.save_all("thread", [])
        emptied = repository.get_conversation("thread")
        assert emptied is not None
        assert emptied.created_at == messages[0].created_at
        assert emptied.message_count == 0
