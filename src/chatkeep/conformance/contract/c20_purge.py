"""C20 purge: `purge_expired` removes physically what nobody sees any more, and nothing else."""

from __future__ import annotations

import datetime as dt
import threading
import time

import pytest

from chatkeep import ChatMemoryRepository
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import in_threads, new_id, outlive, said, texts

HOUR = dt.timedelta(hours=1)


@needs("ttl", "purge", "stored_messages")
class TestC20PurgeExpired:
    """purge_expired removes what nobody sees any more."""

    def test_a_purge_removes_the_expired_alone(
        self, harness: Harness, namespace: str, owned: ChatMemoryRepository
    ) -> None:
        """Physically; a conversation that held nothing else goes too; the report counts both; a dry run only counts."""
        short = harness.shortest_ttl
        gone, mixed, alive, empty = (new_id() for _ in range(4))
        owned.append(gone, said(3), ttl=short)
        owned.append(mixed, said(2, "mortal"), ttl=short)
        owned.append(mixed, said(2, "immortal"))
        owned.append(alive, said(2), ttl=HOUR)
        owned.save_all(empty, [])
        version = owned.append(mixed, [])
        outlive(short)
        assert [harness.stored_messages(namespace, name) for name in (gone, mixed, alive)] == [3, 4, 2]
        for _ in range(2):
            report = owned.purge_expired(dry_run=True)
            assert (report.messages, report.conversations, report.dry_run) == (5, 1, True)
        assert sorted(owned.find_conversation_ids()) == sorted([gone, mixed, alive, empty])
        report = owned.purge_expired()
        assert (report.messages, report.conversations, report.dry_run) == (5, 1, False)
        assert [harness.stored_messages(namespace, name) for name in (gone, mixed, alive)] == [0, 2, 2]
        assert sorted(owned.find_conversation_ids()) == sorted([mixed, alive, empty])
        assert texts(owned.find_by_conversation_id(mixed)) == texts(said(2, "immortal"))
        assert owned.append(mixed, []) >= version
        report = owned.purge_expired()
        assert (report.messages, report.conversations) == (0, 0)

    @pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 1000])
    def test_batches_go_on_until_nothing_is_left(
        self, harness: Harness, namespace: str, owned: ChatMemoryRepository, batch_size: int
    ) -> None:
        """Whatever their size, the report has the whole."""
        short = harness.shortest_ttl
        names = [new_id() for _ in range(3)]
        for name in names:
            owned.append(name, said(4), ttl=short)
        kept = new_id()
        owned.append(kept, said(2))
        owned.append(kept, said(2, "mortal"), ttl=short)
        outlive(short)
        report = owned.purge_expired(batch_size=batch_size)
        assert (report.messages, report.conversations) == (14, 3)
        assert owned.find_conversation_ids() == [kept]
        assert harness.stored_messages(namespace, kept) == 2
        assert [harness.stored_messages(namespace, name) for name in names] == [0, 0, 0]

    def test_a_purge_stays_with_its_owner(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """One owner's purge leaves the other's expired messages for that one's own purge."""
        short = harness.shortest_ttl
        root = opened()
        one, two = root.for_owner(new_id("owner")), root.for_owner(new_id("owner"))
        for repository in (one, two):
            repository.append(conversation_id, said(2), ttl=short)
        outlive(short)
        assert one.purge_expired().messages == 2
        assert harness.stored_messages(namespace, conversation_id) == 2
        assert two.purge_expired(dry_run=True).messages == 2
        assert two.purge_expired().conversations == 1
        assert harness.stored_messages(namespace, conversation_id) == 0

    def test_a_purge_ends_while_others_write(self, harness: Harness, owned: ChatMemoryRepository) -> None:
        """It removes what had expired when it was called, not what expires while it runs."""
        short = harness.shortest_ttl
        over = threading.Event()

        def work(number: int) -> bool:
            if number:
                for turn in range(10**6):
                    if over.is_set():
                        break
                    owned.append(f"busy-{number}-{turn % 50}", said(3), ttl=short)
                return True
            over.wait(short.total_seconds() + 0.1)
            began = time.monotonic()
            watchdog = threading.Timer(8, over.set)
            watchdog.start()
            try:
                owned.purge_expired(batch_size=1)
                return time.monotonic() - began < 8
            finally:
                watchdog.cancel()
                over.set()

        assert all(in_threads(4, work)), "the purge went on as long as others wrote"

    def test_versions_are_never_used_again_after_a_purge(
        self, harness: Harness, owned: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A conversation that a purge removed starts with new numbers when its id is used again."""
        life = max(harness.shortest_ttl, dt.timedelta(seconds=2))  # long enough to be read on a busy machine
        version = owned.append(conversation_id, said(2), ttl=life)
        position = owned.history(conversation_id).items[-1].position
        outlive(life)
        owned.purge_expired()
        assert owned.append(conversation_id, []) == 0
        assert owned.append(conversation_id, said(1)) > version
        assert owned.history(conversation_id).items[0].position > position

    def test_the_newest_expired_leaves_its_position_unused(
        self, harness: Harness, owned: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """After the newest message was purged, the next one gets a position beyond it."""
        life = max(harness.shortest_ttl, dt.timedelta(seconds=2))
        owned.append(conversation_id, said(1, "immortal"))
        owned.append(conversation_id, said(1, "mortal"), ttl=life)
        position = owned.history(conversation_id).items[-1].position
        outlive(life)
        owned.purge_expired()
        owned.append(conversation_id, said(1, "next"))
        assert owned.history(conversation_id).items[-1].position > position
