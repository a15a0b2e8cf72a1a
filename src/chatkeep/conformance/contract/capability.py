"""Capabilities: what the backend declares is what the harness expects, and what it can't do is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from chatkeep import ChatMemoryRepository, UnsupportedOperationError
from chatkeep.capabilities import Capabilities
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness
from chatkeep.conformance.support import memory_over, new_id, said

REFUSED: dict[str, list[Callable[[ChatMemoryRepository, str], object]]] = {
    "conditional_writes": [
        lambda repository, name: repository.append(name, said(1), expected_version=0),
        lambda repository, name: repository.save_all(name, said(1), expected_version=0),
        lambda repository, name: memory_over(repository, "MessageWindowChatMemory", eviction="delete").add(
            name, *said(1)
        ),
    ],
    "conversation_metadata": [
        lambda repository, name: repository.update_conversation(name, title="a"),
        lambda repository, name: repository.update_conversation(name, metadata={}),
    ],
    "ttl": [
        lambda repository, name: repository.append(name, said(1), ttl=dt.timedelta(hours=1)),
        lambda repository, name: repository.save_all(name, said(1), ttl=dt.timedelta(hours=1)),
    ],
    "vectors": [
        lambda repository, name: repository._unchecked.backend.vectors("model", None),
    ],
    "purge": [
        lambda repository, name: repository.purge_expired(),
        lambda repository, name: repository.purge_expired(dry_run=True),
        lambda repository, name: repository.purge_idle(dt.timedelta(days=30)),
    ],
    "context": [
        lambda repository, name: memory_over(repository, "MessageWindowChatMemory").clear(name),
        lambda repository, name: memory_over(repository, "MessageWindowChatMemory").set(name, said(1)),
    ],
}
"""What is refused where a capability is not declared. Other capabilities are promises, not operations."""


class TestCapabilities:
    """The harness decides what is tested; the backend must say the same."""

    def test_the_backend_declares_what_the_harness_expects(
        self, harness: Harness, repository: ChatMemoryRepository
    ) -> None:
        """Field by field, so that neither can be changed alone; handles of owners say the same."""
        for name in Capabilities.__struct_fields__:
            declared = getattr(repository.capabilities, name)
            assert declared == getattr(harness.expected_capabilities, name), name
        assert repository.for_owner("someone").capabilities == repository.capabilities
        assert repository.backend == harness.backend == repository.for_owner("someone").backend

    def test_what_a_harness_cannot_do_has_a_name_and_a_reason(self, harness: Harness) -> None:
        """No excuse for an ability that nobody knows, and none without words."""
        for ability, reason in harness.cannot.items():
            assert hasattr(Harness, ability), ability
            assert len(reason.split()) >= 3, ability
            assert getattr(type(harness), ability) is getattr(Harness, ability) or ability in ("statements",), (
                f"{ability} is implemented and excused"
            )

    @pytest.mark.parametrize("capability", REFUSED)
    def test_what_is_not_declared_is_refused(
        self, harness: Harness, opened: Opened, repository: ChatMemoryRepository, conversation_id: str, capability: str
    ) -> None:
        """UnsupportedOperationError that names the capability, before anything is written; what is declared works."""
        repository.append(conversation_id, said(1))
        for call in REFUSED[capability]:
            name = conversation_id if capability == "conversation_metadata" else new_id()
            if getattr(harness.expected_capabilities, capability):
                if "purge" not in capability:
                    call(repository, name)
                continue
            with pytest.raises(UnsupportedOperationError, match=capability):
                call(repository, name)
            assert repository.count_messages(name) == (name == conversation_id)
        if capability == "ttl" and not harness.expected_capabilities.ttl:
            with pytest.raises(UnsupportedOperationError, match="ttl"):
                opened(ttl=dt.timedelta(hours=1))
