"""C20 expiry: expired messages are invisible at once to every read, and a purge removes them physically."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from chatkeep import NEVER, ChatMemoryRepository, Message
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import messages_of, new_id, outlive, said, texts

HOUR = dt.timedelta(hours=1)


@needs("ttl")
class TestC20Expiry:
    """`ttl` of a call and of a repository."""

    def test_a_message_lives_its_second(self, owned: ChatMemoryRepository, conversation_id: str) -> None:
        """A ttl of one second: visible at once to every read, and to none a second later."""
        second = dt.timedelta(seconds=1)
        messages = said(2)
        owned.append(conversation_id, messages, ttl=second)
        assert owned.find_by_conversation_id(conversation_id) == messages
        assert owned.find_by_conversation_id(conversation_id, limit=1) == messages[1:]
        assert messages_of(owned.history(conversation_id).items) == messages
        assert owned.count_messages(conversation_id) == 2
        outlive(second)
        assert owned.find_by_conversation_id(conversation_id) == []
        assert owned.find_by_conversation_id(conversation_id, limit=1) == []
        assert owned.history(conversation_id).items == []
        assert owned.count_messages(conversation_id) == 0
        conversation = owned.get_conversation(conversation_id)
        assert conversation is not None, "an id whose messages have all expired stays until a purge"
        assert conversation.message_count == 0
        assert owned.find_conversation_ids() == [conversation_id]
        for order in ("id", "updated"):
            listed = owned.list_conversations(order=order).items
            assert [(found.id, found.message_count) for found in listed] == [(conversation_id, 0)]

    def test_the_living_stay_among_the_expired(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Order, windows, pages and counts skip the expired wherever they stand."""
        short = harness.shortest_ttl
        mortal, immortal = said(6, "mortal"), said(6, "immortal")
        for n in range(6):
            repository.append(conversation_id, mortal[n], ttl=short)
            repository.append(conversation_id, immortal[n])
        outlive(short)
        assert repository.find_by_conversation_id(conversation_id) == immortal
        assert repository.find_by_conversation_id(conversation_id, limit=4) == immortal[2:]
        assert repository.count_messages(conversation_id) == 6
        first = repository.history(conversation_id, limit=4)
        second = repository.history(conversation_id, after=first.next_cursor, limit=4)
        assert messages_of(first.items + second.items) == immortal
        assert second.next_cursor is None
        last = repository.history(conversation_id, before=second.items[0].position, limit=2)
        assert messages_of(last.items) == immortal[2:4]

    def test_an_expiry_is_told(self, opened: Opened, conversation_id: str) -> None:
        """`expires_at` of an entry is the time of the write and the ttl, for each message its own."""
        repository = opened(ttl=dt.timedelta(hours=2))
        before = dt.datetime.now(dt.UTC)
        repository.append(conversation_id, said(1, "default"))
        repository.append(conversation_id, said(1, "own"), ttl=HOUR)
        repository.append(conversation_id, said(1, "never"), ttl=NEVER)
        default, own, never = (entry.expires_at for entry in repository.history(conversation_id).items)
        assert never is None
        assert default is not None
        assert own is not None
        slack = dt.timedelta(minutes=1)
        assert abs(default - before - 2 * HOUR) < slack
        assert abs(own - before - HOUR) < slack

    def test_never_outlives_the_repository_s_ttl(self, harness: Harness, opened: Opened, conversation_id: str) -> None:
        """In a repository with a ttl; also for save_all, and `NEVER` as the repository's own ttl is none."""
        short = harness.shortest_ttl
        repository = opened(ttl=short)
        repository.append(conversation_id, said(1, "mortal"))
        repository.append(conversation_id, said(1, "immortal"), ttl=NEVER)
        other = new_id()
        repository.save_all(other, said(2), ttl=NEVER)
        third = new_id()
        opened(ttl=NEVER).append(third, said(1))
        outlive(short)
        assert texts(repository.find_by_conversation_id(conversation_id)) == texts(said(1, "immortal"))
        assert repository.count_messages(other) == 2
        assert repository.history(third).items[0].expires_at is None

    def test_a_replacement_keeps_the_expiry_of_stored_ids(self, opened: Opened, conversation_id: str) -> None:
        """Without ttl: ids that were stored keep theirs, none included, and new ones get the repository's."""
        repository = opened(ttl=2 * HOUR)
        mortal, immortal, new = said(3)
        repository.append(conversation_id, mortal, ttl=HOUR)
        repository.append(conversation_id, immortal, ttl=NEVER)
        before = {entry.message.id: entry.expires_at for entry in repository.history(conversation_id).items}
        changed = Message.user("another text", id=mortal.id)
        repository.save_all(conversation_id, [new, changed, immortal])
        after = {entry.message.id: entry.expires_at for entry in repository.history(conversation_id).items}
        assert after[mortal.id] == before[mortal.id]
        assert after[immortal.id] is None
        assert after[new.id] is not None
        assert after[new.id] != before[mortal.id]

    def test_a_replacement_with_a_ttl_sets_it_for_all(self, opened: Opened, conversation_id: str) -> None:
        """Also for ids that were stored; `NEVER` takes it from all."""
        repository = opened()
        messages = said(3)
        repository.append(conversation_id, messages[:2], ttl=HOUR)
        repository.save_all(conversation_id, messages, ttl=3 * HOUR)
        for entry in repository.history(conversation_id).items:
            assert entry.expires_at is not None
            assert entry.expires_at - dt.datetime.now(dt.UTC) > 2 * HOUR
        repository.save_all(conversation_id, messages, ttl=NEVER)
        assert {entry.expires_at for entry in repository.history(conversation_id).items} == {None}

    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_the_messages_of_one_call_expire_together(
        self, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """At the same moment, so that no reader ever sees a call of a tool gone and its result still there."""
        getattr(repository, call)(conversation_id, said(300), ttl=HOUR)
        entries = repository.history(conversation_id, limit=300).items
        assert len({entry.expires_at for entry in entries}) == 1

    def test_a_repeated_append_prolongs_nothing(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """It is the same message with the expiry it has."""
        (message,) = said(1)
        repository.append(conversation_id, message, ttl=HOUR)
        before = repository.history(conversation_id).items
        repository.append(conversation_id, message, ttl=5 * HOUR)
        repository.append(conversation_id, message, ttl=NEVER)
        assert repository.history(conversation_id).items == before

    def test_an_expired_id_may_be_used_again(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Purged or not: with another content and at the end; it is deleted by nobody's count before."""
        short = harness.shortest_ttl
        first, second = said(2)
        repository.append(conversation_id, first, ttl=short)
        repository.append(conversation_id, second)
        outlive(short)
        assert repository.delete_messages(conversation_id, [first.id]) == 0
        again = Message.user("another text", id=first.id)
        repository.append(conversation_id, again)
        assert repository.find_by_conversation_id(conversation_id) == [second, again]
        assert repository.count_messages(conversation_id) == 2

    def test_an_expired_message_is_brought_back_by_nothing(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A replacement by a list that a client read before the expiry gives its messages a new life, not the old."""
        short = harness.shortest_ttl
        messages = said(2)
        repository.append(conversation_id, messages, ttl=short)
        outlive(short)
        repository.save_all(conversation_id, messages)
        entries = repository.history(conversation_id).items
        assert messages_of(entries) == messages
        assert {entry.expires_at for entry in entries} == {None}

    def test_a_handle_of_an_owner_has_the_repository_s_ttl(
        self, harness: Harness, opened: Opened, conversation_id: str
    ) -> None:
        """A ttl given at open counts for all owners."""
        handle = opened(ttl=HOUR).for_owner(new_id("owner"))
        handle.append(conversation_id, said(1))
        assert handle.history(conversation_id).items[0].expires_at is not None

    @pytest.mark.parametrize(
        ("ttl", "error"),
        [
            (dt.timedelta(0), ValueError),
            (dt.timedelta(seconds=-1), ValueError),
            (dt.timedelta(days=366 * 101), ValueError),
            (60, TypeError),
            (1.5, TypeError),
            ("1h", TypeError),
            (True, TypeError),
        ],
    )
    def test_what_is_no_life_is_refused(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str, ttl: Any, error: type[Exception]
    ) -> None:
        """A timedelta of more than nothing; a number has no unit. Before any I/O."""
        with harness.statements() as sent:
            for call in (repository.append, repository.save_all):
                with pytest.raises(error, match="ttl"):
                    call(conversation_id, said(1), ttl=ttl)
        assert sent == []
        assert repository.get_conversation(conversation_id) is None

    def test_a_long_life_is_a_life(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Ninety-nine years, beyond the year 2038 and beyond what native expiry of some engines takes."""
        repository.append(conversation_id, said(1), ttl=dt.timedelta(days=99 * 365))
        (entry,) = repository.history(conversation_id).items
        assert entry.expires_at is not None
        assert entry.expires_at.year > 2100
