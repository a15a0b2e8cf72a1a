"""C20 delete: afterwards nothing of the conversation is readable by any path, and its id starts empty."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, Message
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import new_id, said, texts, whole_history


class TestC20Delete:
    """delete_by_conversation_id."""

    @needs("stored_messages")
    def test_nothing_of_a_deleted_conversation_is_readable(
        self, harness: Harness, namespace: str, owned: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """By no read, no directory, and not behind the backend's back; the neighbour is untouched."""
        other = new_id()
        owned.append(other, said(2, "other"))
        owned.append(conversation_id, said(30))
        if owned.capabilities.conversation_metadata:
            owned.update_conversation(conversation_id, title="gone", metadata={"gone": True})
        assert owned.delete_by_conversation_id(conversation_id) is True
        assert owned.find_by_conversation_id(conversation_id) == []
        assert owned.find_by_conversation_id(conversation_id, limit=5) == []
        assert owned.history(conversation_id).items == []
        assert owned.count_messages(conversation_id) == 0
        assert owned.get_conversation(conversation_id) is None
        assert owned.find_conversation_ids() == [other]
        for order in ("id", "updated"):
            assert [found.id for found in owned.list_conversations(order=order).items] == [other]
        assert harness.stored_messages(namespace, conversation_id) == 0
        assert texts(owned.find_by_conversation_id(other)) == texts(said(2, "other"))

    def test_deleting_is_idempotent(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """True if there was something, also an empty conversation; False for an unknown id and a second time."""
        assert repository.delete_by_conversation_id(conversation_id) is False
        repository.append(conversation_id, said(2))
        assert repository.delete_by_conversation_id(conversation_id) is True
        assert repository.delete_by_conversation_id(conversation_id) is False
        repository.save_all(conversation_id, [])
        assert repository.delete_by_conversation_id(conversation_id) is True
        assert repository.get_conversation(conversation_id) is None

    def test_a_recreated_conversation_starts_empty(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """No old message, title or metadata; the same message ids may be used again."""
        messages = said(3)
        repository.append(conversation_id, messages)
        if repository.capabilities.conversation_metadata:
            repository.update_conversation(conversation_id, title="old", metadata={"old": True})
        repository.delete_by_conversation_id(conversation_id)
        repository.append(conversation_id, messages[1])
        assert repository.find_by_conversation_id(conversation_id) == [messages[1]]
        conversation = repository.get_conversation(conversation_id)
        assert conversation is not None
        assert (conversation.title, conversation.metadata, conversation.message_count) == (None, {}, 1)

    def test_versions_and_positions_are_never_used_again(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Not after a deletion, an emptying or a replacement under the same id: an old version is always stale."""
        versions: list[int] = []
        positions: list[int] = []
        for turn in range(4):
            for size in (3, 1):
                versions.append(repository.append(conversation_id, said(size, f"turn {turn}")))
            positions += [entry.position for entry in whole_history(repository, conversation_id)]
            versions.append(repository.save_all(conversation_id, said(2, f"new {turn}")))
            positions += [entry.position for entry in whole_history(repository, conversation_id)]
            repository.delete_messages(conversation_id, [repository.find_by_conversation_id(conversation_id)[-1].id])
            versions.append(repository.append(conversation_id, []))
            versions.append(repository.append(conversation_id, said(1, f"last {turn}")))
            positions.append(whole_history(repository, conversation_id)[-1].position)
            versions.append(repository.save_all(conversation_id, []))
            repository.delete_by_conversation_id(conversation_id)
        assert versions == sorted(set(versions))
        assert positions == sorted(set(positions))

    def test_a_page_asked_for_before_a_deletion_finds_nothing_after_it(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A cursor into the deleted conversation never shows the new one's messages as if they went on from there."""
        repository.append(conversation_id, said(10))
        page = repository.history(conversation_id, limit=4)
        assert page.next_cursor is not None
        repository.delete_by_conversation_id(conversation_id)
        assert repository.history(conversation_id, after=page.next_cursor).items == []
        new = said(10, "new")
        repository.append(conversation_id, new)
        backwards = repository.history(conversation_id, before=page.next_cursor)
        assert backwards.items == []

    def test_the_last_message_by_id_goes_alone(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Deleting the newest, a middle one, and the system message; the window closes up each time."""
        messages = [Message.system("Be kind."), *said(5)]
        repository.append(conversation_id, messages)
        for victim in (messages[-1], messages[3], messages[0]):
            assert repository.delete_messages(conversation_id, [victim.id]) == 1
            messages.remove(victim)
            assert repository.find_by_conversation_id(conversation_id) == messages
            assert repository.find_by_conversation_id(conversation_id, limit=2) == messages[-2:]
            assert repository.count_messages(conversation_id) == len(messages)


@needs("purge", "overwrite_conversation")
class TestC20PurgeIdle:
    """purge_idle deletes whole conversations without activity."""

    def make_idle(self, harness: Harness, url: str, conversation_id: str, days: int) -> None:
        """As if its messages had last changed so many days ago."""
        moment = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
        harness.overwrite_conversation(url, conversation_id, updated_at=moment)

    def test_only_idle_conversations_go(self, harness: Harness, namespace: str, owned: ChatMemoryRepository) -> None:
        """As a whole; the report counts both, a dry run deletes nothing."""
        idle, busy, borderline = (new_id() for _ in range(3))
        for conversation_id, days in ((idle, 40), (busy, 0), (borderline, 29)):
            owned.append(conversation_id, said(3))
            self.make_idle(harness, namespace, conversation_id, days)
        month = dt.timedelta(days=30)
        report = owned.purge_idle(month, dry_run=True)
        assert (report.messages, report.conversations, report.dry_run) == (3, 1, True)
        assert len(owned.find_conversation_ids()) == 3
        report = owned.purge_idle(month)
        assert (report.messages, report.conversations, report.dry_run) == (3, 1, False)
        assert sorted(owned.find_conversation_ids()) == sorted([busy, borderline])
        assert owned.count_messages(idle) == 0
        report = owned.purge_idle(month)
        assert (report.messages, report.conversations) == (0, 0)

    @pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 1000])
    def test_batches_go_on_until_nothing_is_left(
        self, harness: Harness, namespace: str, owned: ChatMemoryRepository, batch_size: int
    ) -> None:
        """Whatever their size, the report has the whole."""
        for _ in range(7):
            conversation_id = new_id()
            owned.append(conversation_id, said(2))
            self.make_idle(harness, namespace, conversation_id, 40)
        report = owned.purge_idle(dt.timedelta(days=30), batch_size=batch_size)
        assert (report.messages, report.conversations) == (14, 7)
        assert owned.find_conversation_ids() == []

    @needs("conversation_metadata")
    def test_a_title_is_no_activity_and_a_message_is(
        self, harness: Harness, namespace: str, owned: ChatMemoryRepository
    ) -> None:
        """Title and metadata changes keep nothing alive; an append does."""
        titled, appended = new_id(), new_id()
        for conversation_id in (titled, appended):
            owned.append(conversation_id, said(1))
            self.make_idle(harness, namespace, conversation_id, 40)
        owned.update_conversation(titled, title="new", metadata={"a": 1})
        owned.append(appended, said(1, "new"))
        owned.purge_idle(dt.timedelta(days=30))
        assert owned.find_conversation_ids() == [appended]

    def test_a_purge_stays_with_its_owner(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str
    ) -> None:
        """The nameless owner's purge takes nobody else's, and no owner's takes the nameless one's."""
        root = opened()
        one, two = root.for_owner(new_id("owner")), root.for_owner(new_id("owner"))
        for repository in (root, one, two):
            repository.append(conversation_id, said(1))
        self.make_idle(harness, namespace, conversation_id, 40)
        assert one.purge_idle(dt.timedelta(days=30)).conversations == 1
        assert one.find_conversation_ids() == []
        assert two.count_messages(conversation_id) == 1
        assert root.count_messages(conversation_id) == 1
        root.purge_idle(dt.timedelta(days=30))
        assert root.count_messages(conversation_id) == 0
        assert two.count_messages(conversation_id) == 1

    def test_everything_older_than_no_time_at_all_goes(self, owned: ChatMemoryRepository) -> None:
        """`older_than=0` is allowed and means now; empty conversations go too."""
        owned.append(new_id(), said(2))
        owned.save_all(new_id(), [])
        time.sleep(0.005)
        report = owned.purge_idle(dt.timedelta(0))
        assert (report.messages, report.conversations) == (2, 2)
        assert owned.find_conversation_ids() == []

    def test_what_is_no_age_or_batch_is_refused(self, owned: ChatMemoryRepository) -> None:
        """A number of days is ambiguous, a negative age a mistake, a batch of none endless."""
        with pytest.raises(TypeError, match="older_than"):
            owned.purge_idle(30)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="older_than"):
            owned.purge_idle(dt.timedelta(days=-1))
        purges: list[Callable[[Any], object]] = [
            lambda size: owned.purge_idle(dt.timedelta(0), batch_size=size),
            lambda size: owned.purge_expired(batch_size=size),
        ]
        for purge in purges:
            for size, error in ((0, ValueError), (-1, ValueError), (True, TypeError), ("1", TypeError)):
                with pytest.raises(error, match="batch_size"):
                    purge(size)
