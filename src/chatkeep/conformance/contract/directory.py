"""The directory: update_conversation and list_conversations, where DESIGN's readings go beyond a single rule."""

from __future__ import annotations

import time
from typing import Any, Literal

import pytest

from chatkeep import ChatMemoryRepository, Conversation, ConversationNotFoundError
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import all_pages, new_id, said, texts

Order = Literal["id", "updated"]


def listed(repository: ChatMemoryRepository, order: Order, size: int) -> list[Conversation]:
    """The whole directory, page by page."""
    first = repository.list_conversations(order=order, limit=size)
    pages = all_pages(first, lambda cursor: repository.list_conversations(order=order, limit=size, cursor=cursor))
    return [conversation for page in pages for conversation in page.items]


@needs("conversation_metadata")
class TestUpdateConversation:
    """Title and metadata."""

    def test_what_is_given_is_set_and_the_rest_stays(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Metadata is replaced as a whole; a title of None removes it; what is returned is what is read."""
        repository.append(conversation_id, said(2))
        update = repository.update_conversation
        steps: list[tuple[dict[str, Any], str | None, dict[str, Any]]] = [
            ({}, None, {}),
            ({"title": "one"}, "one", {}),
            ({"metadata": {"a": 1, "b": {"c": [2]}}}, "one", {"a": 1, "b": {"c": [2]}}),
            ({"title": "two"}, "two", {"a": 1, "b": {"c": [2]}}),
            ({"metadata": {"d": 3}}, "two", {"d": 3}),
            ({"title": None}, None, {"d": 3}),
            ({"title": "", "metadata": {}}, "", {}),
        ]
        for given, title, metadata in steps:
            conversation = update(conversation_id, **given)
            assert (conversation.title, conversation.metadata) == (title, metadata)
            assert conversation == repository.get_conversation(conversation_id)
        assert conversation.message_count == 2

    def test_messages_version_and_times_stay(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Directory changes are no changes of the conversation's messages."""
        repository.append(conversation_id, said(2))
        before = repository.get_conversation(conversation_id)
        assert before is not None
        time.sleep(0.002)
        after = repository.update_conversation(conversation_id, title="a", metadata={"b": 1})
        assert (after.version, after.created_at, after.updated_at) == (
            before.version,
            before.created_at,
            before.updated_at,
        )
        assert texts(repository.find_by_conversation_id(conversation_id)) == texts(said(2))

    def test_writes_of_messages_keep_title_and_metadata(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """append, save_all (also of nothing) and delete_messages."""
        messages = said(3)
        repository.append(conversation_id, messages[:1])
        repository.update_conversation(conversation_id, title="kept", metadata={"kept": [1]})
        repository.append(conversation_id, messages[1:])
        repository.delete_messages(conversation_id, [messages[0].id])
        repository.save_all(conversation_id, messages)
        repository.save_all(conversation_id, [])
        conversation = repository.get_conversation(conversation_id)
        assert conversation is not None
        assert (conversation.title, conversation.metadata) == ("kept", {"kept": [1]})

    def test_an_unknown_conversation_is_a_lookup_error(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """ConversationNotFoundError, and nothing is created."""
        for given in ({"title": "a"}, {"metadata": {"a": 1}}, {}):
            with pytest.raises(ConversationNotFoundError, match=conversation_id):
                repository.update_conversation(conversation_id, **given)
        assert issubclass(ConversationNotFoundError, LookupError)
        assert repository.get_conversation(conversation_id) is None

    @pytest.mark.parametrize("length", [255, 256])
    @pytest.mark.parametrize("character", ["a", "漢", "😀"])
    def test_a_title_has_255_characters(
        self, repository: ChatMemoryRepository, conversation_id: str, character: str, length: int
    ) -> None:
        """Of any kind; one more is refused and the old title stays."""
        repository.append(conversation_id, said(1))
        title = character * length
        if length == 255:
            assert repository.update_conversation(conversation_id, title=title).title == title
        else:
            with pytest.raises(ValueError, match="title"):
                repository.update_conversation(conversation_id, title=title)
            conversation = repository.get_conversation(conversation_id)
            assert conversation is not None
            assert conversation.title is None

    @pytest.mark.parametrize("title", [1, b"a", ["a"], True])
    def test_a_title_is_text(self, repository: ChatMemoryRepository, conversation_id: str, title: Any) -> None:
        """Or None."""
        repository.append(conversation_id, said(1))
        with pytest.raises(TypeError, match="title"):
            repository.update_conversation(conversation_id, title=title)

    def test_large_metadata_is_kept_or_refused_whole(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A megabyte comes back; above the limit it is a ValueError and the old stays."""
        repository.append(conversation_id, said(1))
        large = {"text": "漢" * min(350_000, repository.capabilities.max_message_bytes // 4)}
        assert repository.update_conversation(conversation_id, metadata=large).metadata == large
        with pytest.raises(ValueError, match="metadata"):
            repository.update_conversation(
                conversation_id, metadata={"text": "x" * (repository.capabilities.max_message_bytes + 1)}
            )
        conversation = repository.get_conversation(conversation_id)
        assert conversation is not None
        assert conversation.metadata == large


class TestDirectory:
    """list_conversations and find_conversation_ids."""

    @pytest.mark.parametrize("order", ["id", "updated"])
    @pytest.mark.parametrize("size", [1, 2, 5, 6, 100])
    def test_pages_give_each_conversation_once(self, owned: ChatMemoryRepository, order: Order, size: int) -> None:
        """In order, with all that get_conversation tells; next_cursor is None at the end, also where it fits."""
        names = [new_id() for _ in range(5)]
        for name in names:
            owned.append(name, said(2))
            time.sleep(0.002)
        expected = sorted(names) if order == "id" else names[::-1]
        found = listed(owned, order, size)
        assert [conversation.id for conversation in found] == expected
        assert found == [owned.get_conversation(name) for name in expected]
        assert owned.list_conversations(order=order, limit=5).next_cursor is None
        assert sorted(owned.find_conversation_ids()) == sorted(names)

    def test_the_last_changed_comes_first(self, owned: ChatMemoryRepository) -> None:
        """Every change of messages counts, title and metadata do not."""
        one, two, three = (new_id() for _ in range(3))
        messages = said(2)
        for name in (one, two, three):
            owned.append(name, messages)
            time.sleep(0.002)
        if owned.capabilities.conversation_metadata:
            owned.update_conversation(one, title="a")
            assert [found.id for found in listed(owned, "updated", 10)] == [three, two, one]
        owned.append(one, said(1))
        time.sleep(0.002)
        assert [found.id for found in listed(owned, "updated", 10)] == [one, three, two]
        owned.delete_messages(two, [messages[0].id])
        time.sleep(0.002)
        assert [found.id for found in listed(owned, "updated", 10)] == [two, one, three]
        owned.save_all(three, [])
        assert [found.id for found in listed(owned, "updated", 1)] == [three, two, one]

    @needs("overwrite_conversation")
    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_equal_times_lose_nothing(
        self, harness: Harness, namespace: str, owned: ChatMemoryRepository, size: int
    ) -> None:
        """Conversations that changed in the same microsecond appear once each, in the order of their ids."""
        names = sorted(new_id() for _ in range(5))
        for name in names:
            owned.append(name, said(1))
        first = owned.get_conversation(names[0])
        assert first is not None
        for name in names:
            harness.overwrite_conversation(namespace, name, updated_at=first.updated_at)
        assert [found.id for found in listed(owned, "updated", size)] == names

    @pytest.mark.parametrize("order", ["id", "updated"])
    def test_pages_are_stable_while_others_write(self, owned: ChatMemoryRepository, order: Order) -> None:
        """What doesn't change meanwhile appears exactly once, whatever is created, changed and deleted."""
        names = sorted(new_id() for _ in range(12))
        for name in names:
            owned.append(name, said(1))
            time.sleep(0.001)
        restless = {names[1], names[6], names[10]}
        seen: list[str] = []
        page = owned.list_conversations(order=order, limit=2)
        while True:
            seen += [found.id for found in page.items]
            owned.append(new_id(), said(1))
            owned.append(names[6], said(1))
            owned.delete_by_conversation_id(names[1])
            owned.delete_by_conversation_id(names[10])
            if page.next_cursor is None:
                break
            page = owned.list_conversations(order=order, limit=2, cursor=page.next_cursor)
            assert len(seen) < 100, "the pages never end"
        for name in names:
            if name not in restless:
                assert seen.count(name) == 1, name
        assert len(seen) == len(set(seen)) or order == "updated"

    def test_a_limit_of_zero_is_an_empty_page(self, owned: ChatMemoryRepository) -> None:
        """Without a cursor; an owner without conversations has an empty directory."""
        assert owned.list_conversations().items == []
        assert owned.find_conversation_ids() == []
        owned.append(new_id(), said(1))
        page = owned.list_conversations(limit=0)
        assert (page.items, page.next_cursor) == ([], None)

    @pytest.mark.parametrize("order", ["", "ID", "created", None, 1, "updated; --"])
    def test_an_unknown_order_is_refused(self, owned: ChatMemoryRepository, order: Any) -> None:
        """And never put into a statement."""
        with pytest.raises(ValueError, match="order"):
            owned.list_conversations(order=order)

    def test_the_default_page_has_a_hundred(self, owned: ChatMemoryRepository) -> None:
        """A directory of many is never read whole by accident; find_conversation_ids has them all."""
        for _ in range(101):
            owned.save_all(new_id(), [])
        page = owned.list_conversations()
        assert len(page.items) == 100
        assert page.next_cursor is not None
        assert len(owned.find_conversation_ids()) == 101
