"""C16 fresh reads, no aliasing: a committed write is visible at once, and nothing handed in or out is shared."""

from __future__ import annotations

from typing import Any

from chatkeep import ChatMemoryRepository, Message, Opaque
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import messages_of, new_id, said


class TestC16FreshReads:
    """What one handle has committed, every other sees in its next call."""

    def test_two_repositories_see_each_others_appends(self, opened: Opened, conversation_id: str) -> None:
        """Thirty times, now one and now the other, through every read."""
        pair = (opened(), opened())
        written: list[Message] = []
        for turn in range(30):
            # Two or three writes of one before the other's turn: a writer's own reads may hide what it remembers.
            writer, reader = pair[turn % 5 > 1], pair[turn % 5 <= 1]
            (message,) = said(1, f"turn {turn}")
            version = writer.append(conversation_id, message)
            written.append(message)
            assert reader.find_by_conversation_id(conversation_id) == written
            assert reader.find_by_conversation_id(conversation_id, limit=1) == [message]
            assert reader.count_messages(conversation_id) == turn + 1
            assert messages_of(reader.history(conversation_id).items) == written
            conversation = reader.get_conversation(conversation_id)
            assert conversation is not None
            assert (conversation.version, conversation.message_count) == (version, turn + 1)

    def test_two_repositories_see_each_others_other_writes(self, opened: Opened) -> None:
        """Replacements, deletions, directory entries: nothing is remembered from before."""
        owner = new_id("owner")
        one, two = opened(owner=owner), opened().for_owner(owner)
        conversation_id = new_id()
        for turn in range(5):
            new = said(3, f"turn {turn}")
            one.save_all(conversation_id, new)
            assert two.find_by_conversation_id(conversation_id) == new
            assert two.find_conversation_ids() == [conversation_id]
            two.delete_messages(conversation_id, [new[1].id])
            assert one.find_by_conversation_id(conversation_id) == [new[0], new[2]]
            if one.capabilities.conversation_metadata:
                one.update_conversation(conversation_id, title=f"title {turn}")
                listed = two.list_conversations().items
                assert [conversation.title for conversation in listed] == [f"title {turn}"]
            assert two.delete_by_conversation_id(conversation_id) is True
            assert one.find_by_conversation_id(conversation_id) == []
            assert one.get_conversation(conversation_id) is None
            assert one.find_conversation_ids() == []

    def test_both_forms_see_each_other(self, harness: Harness, namespace: str, conversation_id: str) -> None:
        """A synchronous and an asynchronous repository over one store."""
        with harness.open("sync", namespace) as one, harness.open("async", namespace) as two:
            one.append(conversation_id, said(1))
            assert two.count_messages(conversation_id) == 1
            two.append(conversation_id, said(1, "two"))
            assert one.count_messages(conversation_id) == 2


class TestC16NoAliasing:
    """Changing a list or a dict outside changes nothing inside, and the other way round."""

    def test_lists_handed_in_are_not_kept(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """The caller's list may be emptied, filled or reordered after the call."""
        for call in (repository.append, repository.save_all):
            handed = said(3)
            expected = list(handed)
            call(conversation_id, handed)
            handed.append(Message.user("later"))
            handed.reverse()
            assert repository.find_by_conversation_id(conversation_id) == expected
            repository.delete_by_conversation_id(conversation_id)

    def test_lists_handed_out_are_the_callers_own(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """What is done to a result appears in no later one."""
        messages = said(3)
        repository.append(conversation_id, messages)
        repository.find_by_conversation_id(conversation_id).clear()
        repository.history(conversation_id).items.clear()
        repository.find_conversation_ids().clear()
        repository.list_conversations().items.clear()
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert messages_of(repository.history(conversation_id).items) == messages
        assert conversation_id in repository.find_conversation_ids()

    def test_values_handed_in_are_not_kept(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Metadata, opaque data and unknown fields, changed after the message was made or after it was stored."""
        metadata: dict[str, Any] = {"list": [1]}
        data: dict[str, Any] = {"list": [1]}
        empty: dict[str, Any] = {}
        message = Message("user", (Opaque("x", data),), metadata=metadata, extra=empty)
        metadata["list"].append(2)
        data["list"].append(2)
        empty["late"] = True
        repository.append(conversation_id, message)
        message.metadata["list"].append(3)
        part = message.parts[0]
        assert isinstance(part, Opaque)
        part.data["list"].append(3)
        (found,) = repository.find_by_conversation_id(conversation_id)
        assert found.metadata == {"list": [1]}
        assert found.extra == {}
        assert isinstance(found.parts[0], Opaque)
        assert found.parts[0].data == {"list": [1]}

    def test_values_handed_out_are_the_callers_own(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Two reads share nothing."""
        repository.append(conversation_id, Message("user", (Opaque("x", [1]),), metadata={"list": [1]}))
        (first,) = repository.find_by_conversation_id(conversation_id)
        first.metadata["list"].append(2)
        first.metadata["new"] = 1
        part = first.parts[0]
        assert isinstance(part, Opaque)
        part.data.append(2)
        (second,) = repository.find_by_conversation_id(conversation_id)
        assert second.metadata == {"list": [1]}
        assert isinstance(second.parts[0], Opaque)
        assert second.parts[0].data == [1]

    @needs("conversation_metadata")
    def test_directory_values_are_not_shared(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """The conversation's metadata, handed in and handed out."""
        repository.append(conversation_id, said(1))
        handed: dict[str, Any] = {"list": [1]}
        returned = repository.update_conversation(conversation_id, metadata=handed)
        handed["list"].append(2)
        returned.metadata["list"].append(3)
        first = repository.get_conversation(conversation_id)
        assert first is not None
        assert first.metadata == {"list": [1]}
        first.metadata["list"].append(4)
        second = repository.get_conversation(conversation_id)
        assert second is not None
        assert second.metadata == {"list": [1]}

    def test_empty_metadata_is_not_shared(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """A default that everybody could fill would appear everywhere."""
        repository.append(conversation_id, said(1))
        first = repository.get_conversation(conversation_id)
        (message,) = repository.find_by_conversation_id(conversation_id)
        assert first is not None
        first.metadata["x"] = 1
        message.metadata["x"] = 1
        message.extra["x"] = 1
        second = repository.get_conversation(conversation_id)
        assert second is not None
        assert second.metadata == {}
        (again,) = repository.find_by_conversation_id(conversation_id)
        assert (again.metadata, again.extra) == ({}, {})
        assert Message.user("new").metadata == {}
        assert Message.user("new").extra == {}
