"""C21 owners: with an owner scope no call can see or change another owner's data."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

import pytest

from chatkeep import ChatkeepError, ChatMemoryRepository, InvalidOwnerError, Message
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs, require
from chatkeep.conformance.support import in_threads, new_id, said, texts

READS: dict[str, Callable[[ChatMemoryRepository, str], Any]] = {
    "find_by_conversation_id": lambda repository, name: repository.find_by_conversation_id(name),
    "find with limit": lambda repository, name: repository.find_by_conversation_id(name, limit=1),
    "history": lambda repository, name: repository.history(name).items,
    "history backwards": lambda repository, name: repository.history(name, before=2**62).items,
    "count_messages": lambda repository, name: repository.count_messages(name),
    "get_conversation": lambda repository, name: repository.get_conversation(name),
    "find_conversation_ids": lambda repository, name: repository.find_conversation_ids(),
    "list by id": lambda repository, name: repository.list_conversations().items,
    "list by change": lambda repository, name: repository.list_conversations(order="updated").items,
    "version": lambda repository, name: repository.append(name, []),
}

NO_AGE = dt.timedelta(0)

WRITES: dict[str, Callable[[ChatMemoryRepository, str, list[Message]], object]] = {
    "append": lambda repository, name, theirs: repository.append(name, said(1, "mine")),
    "append their messages": lambda repository, name, theirs: repository.append(name, theirs),
    "append their ids": lambda repository, name, theirs: repository.append(
        name, [Message.user("mine", id=message.id) for message in theirs]
    ),
    "append expecting nothing": lambda repository, name, theirs: repository.append(name, said(1), expected_version=0),
    "save_all": lambda repository, name, theirs: repository.save_all(name, said(1, "mine")),
    "save_all nothing": lambda repository, name, theirs: repository.save_all(name, []),
    "delete_messages": lambda repository, name, theirs: repository.delete_messages(name, [m.id for m in theirs]),
    "delete_by_conversation_id": lambda repository, name, theirs: repository.delete_by_conversation_id(name),
    "update_conversation": lambda repository, name, theirs: repository.update_conversation(name, title="mine"),
    "purge_expired": lambda repository, name, theirs: repository.purge_expired(),
    "purge_idle": lambda repository, name, theirs: repository.purge_idle(NO_AGE),
}
"""Each acts on the same conversation id and knows the other's message ids."""

WRITES_NEED = {
    "append expecting nothing": "conditional_writes",
    "update_conversation": "conversation_metadata",
    "purge_expired": "purge",
    "purge_idle": "purge",
}
"""The capability without which such a write is refused, which TestCapabilities checks."""


class TestC21Owners:
    """(owner, conversation id) is the identity of a conversation."""

    @pytest.fixture
    def pair(self, opened: Opened) -> tuple[ChatMemoryRepository, ChatMemoryRepository]:
        """Handles of two owners over one repository."""
        root = opened()
        return root.for_owner(new_id("mine")), root.for_owner(new_id("theirs"))

    @pytest.mark.parametrize("name", READS)
    def test_no_read_sees_another_owner_s_data(
        self, pair: tuple[ChatMemoryRepository, ChatMemoryRepository], conversation_id: str, name: str
    ) -> None:
        """The same id under another owner reads like an unknown id."""
        mine, theirs = pair
        nothing = READS[name](mine, conversation_id)
        theirs.append(conversation_id, said(3))
        assert READS[name](theirs, conversation_id) != nothing
        assert READS[name](mine, conversation_id) == nothing

    @pytest.mark.parametrize("name", WRITES)
    @pytest.mark.parametrize("exists", [False, True], ids=["mine is absent", "mine exists"])
    def test_no_write_changes_another_owner_s_data(
        self,
        harness: Harness,
        pair: tuple[ChatMemoryRepository, ChatMemoryRepository],
        conversation_id: str,
        name: str,
        exists: bool,
    ) -> None:
        """Whether my conversation of that id exists or not; afterwards theirs is as it was in every read."""
        if name in WRITES_NEED:
            require(harness, WRITES_NEED[name])
        mine, theirs = pair
        messages = said(3, "theirs")
        theirs.append(conversation_id, messages)
        if exists:
            mine.append(conversation_id, said(2, "mine"))
        before = {read: READS[read](theirs, conversation_id) for read in READS}
        time.sleep(0.002)
        try:
            WRITES[name](mine, conversation_id, messages)
        except ChatkeepError:
            # Refused is as good as done: a conversation of mine that is absent, or exists already.
            assert name in ("update_conversation", "append expecting nothing")
        assert {read: READS[read](theirs, conversation_id) for read in READS} == before

    @needs("ttl", "purge")
    def test_a_cursor_of_another_owner_shows_only_mine(
        self, pair: tuple[ChatMemoryRepository, ChatMemoryRepository]
    ) -> None:
        """A cursor is a place in an order, not a key to somebody's directory."""
        mine, theirs = pair
        names = sorted(new_id() for _ in range(4))
        for name in names:
            theirs.append(name, said(1))
        mine.append(names[3], said(1, "mine"))
        cursor = theirs.list_conversations(limit=2).next_cursor
        found = mine.list_conversations(cursor=cursor).items
        assert [(conversation.id, conversation.owner) for conversation in found] == [(names[3], mine.owner)]

    def test_the_nameless_owner_is_an_owner(self, opened: Opened, conversation_id: str) -> None:
        """A repository without owner sees conversations without owner, not everybody's."""
        root, owner = opened(), new_id("owner")
        root.for_owner(owner).append(conversation_id, said(1))
        assert root.owner == ""
        assert root.find_by_conversation_id(conversation_id) == []
        assert conversation_id not in root.find_conversation_ids()
        assert root.delete_by_conversation_id(conversation_id) is False
        assert root.for_owner("").count_messages(conversation_id) == 0
        assert root.for_owner(owner).count_messages(conversation_id) == 1

    def test_an_owner_is_named_at_open_or_later(self, opened: Opened, conversation_id: str) -> None:
        """`owner=` of open and `for_owner` lead to the same conversations, which tell their owner."""
        owner = new_id("owner")
        opened(owner=owner).append(conversation_id, said(1))
        handle = opened().for_owner(owner)
        assert handle.owner == owner
        assert handle.count_messages(conversation_id) == 1
        conversation = handle.get_conversation(conversation_id)
        assert conversation is not None
        assert (conversation.id, conversation.owner) == (conversation_id, owner)
        assert handle.for_owner(owner).count_messages(conversation_id) == 1

    def test_a_handle_cannot_name_another_owner(self, opened: Opened) -> None:
        """Who was given one owner's handle can't reach others, nor the nameless owner."""
        for handle in (opened(owner="a"), opened().for_owner("a")):
            for other in ("b", "A", ""):
                with pytest.raises(InvalidOwnerError):
                    handle.for_owner(other)

    def test_owners_writing_at_once_stay_apart(self, opened: Opened, conversation_id: str) -> None:
        """Six owners append to the same id at the same time over one repository."""
        root = opened()
        handles = [root.for_owner(new_id("owner")) for _ in range(6)]
        in_threads(6, lambda n: [handles[n].append(conversation_id, said(1, f"{n} {turn}")) for turn in range(6)])
        for n, handle in enumerate(handles):
            expected = [text for turn in range(6) for text in texts(said(1, f"{n} {turn}"))]
            assert texts(handle.find_by_conversation_id(conversation_id)) == expected
