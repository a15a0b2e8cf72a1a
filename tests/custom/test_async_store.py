"""Stores behind AsyncChatMemoryRepository: asynchronous ones awaited, synchronous ones in worker threads."""

import asyncio
import threading
from typing import Any

import pytest

from chatkeep import AsyncChatMemoryRepository, ConcurrentChangeError, ConfigurationError, Message, StorageError
from chatkeep.custom import ChatMemoryStore, async_repository_over, repository_over
from tests.custom.stores import AsyncDictStore, ConditionalDictStore, ParallelAsyncDictStore


def said(count: int, prefix: str = "line") -> list[Message]:
    return [Message.user(f"{prefix} {number}") for number in range(count)]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [ConditionalDictStore, AsyncDictStore, ParallelAsyncDictStore])
async def test_every_method_works_awaited(kind: Any) -> None:
    messages = said(5)
    async with async_repository_over(kind()) as repository:
        assert type(repository) is AsyncChatMemoryRepository
        version = await repository.append("thread", messages[:3], expected_version=0)
        assert await repository.append("thread", messages[3:], expected_version=version) > version
        assert await repository.append("thread", messages, expected_version=version) > version
        with pytest.raises(ConcurrentChangeError):
            await repository.save_all("thread", [], expected_version=version)
        assert await repository.find_conversation_ids() == ["thread"]
        assert await repository.find_by_conversation_id("thread", limit=2) == messages[-2:]
        assert await repository.count_messages("thread") == 5
        page = await repository.history("thread", limit=3)
        rest = await repository.history("thread", after=page.next_cursor)
        assert [entry.message for entry in [*page.items, *rest.items]] == messages
        assert await repository.delete_messages("thread", [messages[0].id]) == 1
        conversation = await repository.get_conversation("thread")
        assert conversation is not None
        assert conversation.message_count == 4
        assert [entry.id for entry in (await repository.list_conversations()).items] == ["thread"]
        handle = repository.for_owner("ann")
        assert await handle.find_by_conversation_id("thread") == []
        assert await repository.delete_by_conversation_id("thread") is True
        assert await repository.get_conversation("thread") is None


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [ConditionalDictStore, AsyncDictStore, ParallelAsyncDictStore])
async def test_appends_of_many_tasks_all_survive(kind: Any) -> None:
    async with async_repository_over(kind()) as repository:
        await asyncio.gather(*(repository.append("thread", said(2, f"task {number}")) for number in range(25)))
        found = [message.text for message in await repository.find_by_conversation_id("thread")]
    assert len(found) == 50
    assert all(found[index].removesuffix("0") == found[index + 1].removesuffix("1") for index in range(0, 50, 2))


@pytest.mark.asyncio
@pytest.mark.parametrize(("kind", "most"), [(AsyncDictStore, {1}), (ParallelAsyncDictStore, set(range(2, 21)))])
async def test_no_two_verbs_run_at_once_unless_the_store_is_parallel(kind: Any, most: set[int]) -> None:
    store = kind()
    async with async_repository_over(store) as repository:
        await asyncio.gather(*(repository.append(f"thread-{number}", said(1)) for number in range(20)))
    assert store.most_at_once in most
    assert len(store.saved) == 20


def test_an_asynchronous_store_works_in_several_loops_at_once() -> None:
    store = AsyncDictStore()

    def run(number: int) -> None:
        async def write() -> None:
            repository = async_repository_over(store)
            for call in range(10):
                await repository.append("thread", Message.user(f"{number} {call}"))

        asyncio.run(write())

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.saved["thread"]) == 30
    assert store.most_at_once == 1


def test_one_repository_survives_its_event_loop() -> None:
    store = AsyncDictStore()
    repository = async_repository_over(store)
    for number in range(3):
        asyncio.run(repository.append("thread", Message.user(str(number))))
    assert [message.text for message in asyncio.run(repository.find_by_conversation_id("thread"))] == ["0", "1", "2"]
    asyncio.run(repository.close())
    assert store.closed


@pytest.mark.asyncio
async def test_a_cancelled_write_has_happened_or_never_will() -> None:
    class Slow(AsyncDictStore):
        begun = asyncio.Event()

        async def save_all(self, conversation_id: str, messages: list[Message]) -> None:
            self.begun.set()
            await asyncio.sleep(0.05)
            await super().save_all(conversation_id, messages)

    store = Slow()
    async with async_repository_over(store) as repository:
        write = asyncio.create_task(repository.append("thread", said(1)))
        await store.begun.wait()
        write.cancel()
        await asyncio.sleep(0)
        write.cancel()  # a second time: it still waits for the write
        with pytest.raises(asyncio.CancelledError):
            await write
        assert len(store.saved["thread"]) == 1
        # The lock is free again, and what happened is seen.
        await asyncio.wait_for(repository.append("thread", said(1)), 5)
        assert await repository.count_messages("thread") == 2


@pytest.mark.asyncio
async def test_a_write_cancelled_while_it_waits_for_the_lock_never_happens() -> None:
    store = AsyncDictStore()
    async with async_repository_over(store) as repository:
        first = asyncio.create_task(repository.append("thread", said(1, "first")))
        await asyncio.sleep(0)
        second = asyncio.create_task(repository.append("thread", said(1, "second")))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        await first
        assert [message.text for message in await repository.find_by_conversation_id("thread")] == ["first 0"]


@pytest.mark.asyncio
async def test_errors_of_an_asynchronous_store_are_storage_errors() -> None:
    class Failing(AsyncDictStore):
        async def save_all(self, conversation_id: str, messages: list[Message]) -> None:
            raise OSError("no route to secret.example")

    async with async_repository_over(Failing()) as repository:
        with pytest.raises(StorageError, match="save_all with OSError") as caught:
            await repository.append("thread", said(1))
        assert isinstance(caught.value.__cause__, OSError)
        assert "secret" not in str(caught.value)


@pytest.mark.asyncio
async def test_a_plain_method_in_an_asynchronous_store_is_refused() -> None:
    class Mixed(AsyncDictStore):
        def save_all(self, conversation_id: str, messages: list[Message]) -> None:  # type: ignore[override]
            return None

    async with async_repository_over(Mixed()) as repository:
        with pytest.raises(ConfigurationError, match="async def"):
            await repository.append("thread", said(1))


@pytest.mark.asyncio
async def test_the_default_append_of_an_asynchronous_store_saves_the_whole_list() -> None:
    store, messages = AsyncDictStore(), said(3)
    await store.append("thread", messages[:2])
    await store.append("thread", messages[2:])
    assert store.saved["thread"] == messages


@pytest.mark.asyncio
async def test_a_synchronous_store_blocks_no_other_task() -> None:
    class Blocking(ConditionalDictStore):
        def __init__(self) -> None:
            super().__init__()
            self.begun, self.go_on = threading.Event(), threading.Event()

        def save_all(self, conversation_id: str, messages: list[Message]) -> None:
            self.begun.set()
            assert self.go_on.wait(10)
            super().save_all(conversation_id, messages)

    store = Blocking()
    async with async_repository_over(store) as repository:
        write = asyncio.create_task(repository.append("thread", said(1)))
        assert await asyncio.to_thread(store.begun.wait, 10)
        store.go_on.set()
        await write


def test_a_sync_and_an_async_repository_share_one_store() -> None:
    store: ChatMemoryStore = ConditionalDictStore()
    plain = repository_over(store)
    version = plain.append("thread", said(1))

    async def write() -> int:
        return await async_repository_over(store).append("thread", said(1), expected_version=version)

    changed = asyncio.run(write())
    assert plain.append("thread", []) == changed
