"""A store under a URL scheme of its own: registered by hand or by an entry point."""

import asyncio
import datetime as dt
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chatkeep import (
    ConfigurationError,
    Message,
    StorageError,
    UnsupportedOperationError,
    open_async_repository,
    open_repository,
    registry,
)
from chatkeep.config import parse_count, parse_text
from chatkeep.custom import AsyncChatMemoryStore, ChatMemoryStore, Option, register_backend, store_plugin
from tests.custom.stores import AsyncDictStore, ConditionalDictStore, DictStore

STORES: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", {})
    STORES.clear()
    yield
    gc.collect()  # states of URLs live as long as a repository


def by_name(url: Any) -> ChatMemoryStore:
    store: ChatMemoryStore = STORES.setdefault(url.database, ConditionalDictStore())
    return store


def by_name_async(url: Any) -> AsyncChatMemoryStore:
    store: AsyncChatMemoryStore = STORES.setdefault(url.database, AsyncDictStore())
    return store


def test_a_registered_scheme_opens_in_both_forms() -> None:
    register_backend(store_plugin("mine", by_name))
    message = Message.user("Hi")
    with open_repository("mine:shelf") as repository:
        assert repository.backend == "mine"
        repository.append("thread", message)

    async def read() -> list[Message]:
        async with await open_async_repository("mine:shelf") as again:
            return await again.find_by_conversation_id("thread")

    assert asyncio.run(read()) == [message]


def test_an_asynchronous_factory_serves_the_asynchronous_form_alone() -> None:
    register_backend(store_plugin("mine", async_factory=by_name_async))
    with pytest.raises(ConfigurationError, match="open_async_repository"):
        open_repository("mine:shelf")

    async def write() -> None:
        async with await open_async_repository("mine:shelf") as repository:
            await repository.append("thread", Message.user("Hi"))
            assert repository.capabilities.native_async

    asyncio.run(write())
    assert STORES["shelf"].closed


def test_each_form_has_its_own_factory() -> None:
    register_backend(store_plugin("mine", lambda _: ConditionalDictStore(), async_factory=lambda _: AsyncDictStore()))
    with open_repository("mine:") as repository:
        assert not repository.capabilities.native_async

    async def look() -> bool:
        async with await open_async_repository("mine:") as again:
            return again.capabilities.native_async

    assert asyncio.run(look())


def test_a_synchronous_factory_that_gives_an_asynchronous_store_is_refused() -> None:
    register_backend(store_plugin("mine", by_name_async))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="open_async_repository"):
        open_repository("mine:shelf")


def test_repositories_of_one_url_share_lock_and_versions() -> None:
    saved: dict[str, list[Message]] = {}

    def one_each(url: Any) -> ChatMemoryStore:
        store = ConditionalDictStore()
        store.saved = saved
        return store

    register_backend(store_plugin("mine", one_each))
    with open_repository("mine:shelf") as one, open_repository("mine:shelf") as two:
        version = one.append("thread", Message.user("Hi"))
        assert two.append("thread", Message.user("Ho"), expected_version=version) > version


def test_options_reach_the_factory_converted() -> None:
    seen: list[dict[str, Any]] = []

    def factory(url: Any, **options: Any) -> ChatMemoryStore:
        seen.append(options)
        return DictStore()

    options = [Option("size", parse_count(1, 9), "how many"), Option("table", parse_text, "where")]
    register_backend(store_plugin("mine", factory, options=options))
    open_repository("mine:x?size=3", table="t").close()
    open_repository("mine:x").close()
    assert seen == [{"size": 3, "table": "t"}, {}]
    with pytest.raises(ConfigurationError, match=r"'colour'.*known: .*size"):
        open_repository("mine:x?colour=red")
    with pytest.raises(ConfigurationError, match="size"):
        open_repository("mine:x?size=10")


def test_common_options_work_and_what_is_not_claimed_is_refused() -> None:
    register_backend(store_plugin("mine", by_name))
    with open_repository("mine:shelf", owner="ann") as repository:
        repository.append("thread", Message.user("Hi"))
    assert list(STORES["shelf"].saved) == ["ann\x1fthread"]
    with pytest.raises(UnsupportedOperationError, match="ttl"):
        open_repository("mine:shelf", ttl=dt.timedelta(1))


def test_a_factory_that_fails_is_a_storage_error_without_its_text() -> None:
    def factory(url: Any) -> ChatMemoryStore:
        raise OSError(f"no entry with {url.password}")

    register_backend(store_plugin("mine", factory))
    with pytest.raises(StorageError, match="mine store failed in open") as caught:
        open_repository("mine://ann:hunter2@host/x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "My", "my-store", "my store", "9lives", "my:store"])
def test_a_name_that_no_url_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="scheme"):
        store_plugin(name, by_name)


def test_a_plugin_without_a_factory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="factory"):
        store_plugin("mine")


def test_a_taken_scheme_is_refused() -> None:
    register_backend(store_plugin("mine", by_name, schemes=("mine", "yours")))
    with pytest.raises(ConfigurationError, match="'yours' belongs to 'mine'"):
        register_backend(store_plugin("yours", by_name))
    with pytest.raises(ConfigurationError, match="inprocess"):
        register_backend(store_plugin("inprocess", by_name))


def test_an_entry_point_makes_a_scheme_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "their_store.py"
    package.write_text(
        "from chatkeep.custom import store_plugin\n"
        "from tests.custom.stores import DictStore\n"
        "BACKEND = store_plugin('theirs', lambda url: DictStore())\n"
    )
    info = tmp_path / "their_store-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-store\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[chatkeep.backends]\ntheirs = their_store:BACKEND\n")
    monkeypatch.syspath_prepend(tmp_path)
    with open_repository("theirs:anything") as repository:
        repository.append("thread", Message.user("Hi"))
        assert repository.backend == "theirs"


def test_the_code_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "own-store.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in guide.split("```python\n")[1:]]
    exec("\n".join(blocks[:2]), {"__name__": "guide"})
    assert capsys.readouterr().out == "2\n"
