"""What a store of four verbs may claim, and that the rest is refused by name."""

import datetime as dt
from typing import Any

import pytest

from chatkeep import (
    Capabilities,
    ConfigurationError,
    Message,
    UnsupportedOperationError,
)
from chatkeep.custom import repository_over
from tests.custom.stores import AsyncDictStore, DictStore


def said(count: int, prefix: str = "line") -> list[Message]:
    return [Message.user(f"{prefix} {number}") for number in range(count)]


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
