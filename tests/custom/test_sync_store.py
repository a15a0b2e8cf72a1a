"""A synchronous store of four verbs behind ChatMemoryRepository."""

import contextlib
import threading
import time

import pytest

from chatkeep import (
    Capabilities,
    ChatMemoryRepository,
    ConcurrentChangeError,
    Message,
    RepositoryClosedError,
)
from chatkeep.custom import ChatMemoryStore, repository_over
from tests.custom.stores import ConditionalDictStore, DictStore


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
