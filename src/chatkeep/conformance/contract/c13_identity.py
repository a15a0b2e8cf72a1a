"""C13 identity: two different ids are two conversations, and every id is checked once, in Python, alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from chatkeep import (
    ChatMemoryRepository,
    ConfigurationError,
    InvalidConversationIdError,
    InvalidMessageError,
    InvalidOwnerError,
    Message,
)
from chatkeep.conformance import strategies
from chatkeep.conformance.contract.c08_lossless import in_one_repository
from chatkeep.conformance.corpus import BAD_IDS, DIFFERENT_IDS, ODD_IDS
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Form, Harness
from chatkeep.conformance.support import new_id, said, texts

CALLS: dict[str, Callable[..., object]] = {
    "find_by_conversation_id": lambda repository, conversation_id: repository.find_by_conversation_id(conversation_id),
    "find with limit 0": lambda repository, conversation_id: repository.find_by_conversation_id(
        conversation_id, limit=0
    ),
    "save_all": lambda repository, conversation_id: repository.save_all(conversation_id, said(1)),
    "append": lambda repository, conversation_id: repository.append(conversation_id, said(1)),
    "append nothing": lambda repository, conversation_id: repository.append(conversation_id, []),
    "delete_by_conversation_id": lambda repository, conversation_id: repository.delete_by_conversation_id(
        conversation_id
    ),
    "history": lambda repository, conversation_id: repository.history(conversation_id),
    "count_messages": lambda repository, conversation_id: repository.count_messages(conversation_id),
    "delete_messages": lambda repository, conversation_id: repository.delete_messages(conversation_id, ["a"]),
    "get_conversation": lambda repository, conversation_id: repository.get_conversation(conversation_id),
    "update_conversation": lambda repository, conversation_id: repository.update_conversation(
        conversation_id, title="a"
    ),
}


class TestC13Identity:
    """Ids of conversations, owners and messages."""

    @pytest.mark.parametrize("kind", DIFFERENT_IDS)
    def test_two_ids_are_two_conversations(self, owned: ChatMemoryRepository, kind: str) -> None:
        """Pairs that differ by case, accent, normal form, width and other things that collations pass over."""
        one, two = DIFFERENT_IDS[kind]
        assert one != two
        owned.append(one, said(1, "one"))
        assert owned.find_by_conversation_id(two) == []
        assert owned.get_conversation(two) is None
        assert owned.delete_by_conversation_id(two) is False
        owned.append(two, said(2, "two"))
        assert sorted(owned.find_conversation_ids()) == sorted([one, two])
        assert sorted(found.id for found in owned.list_conversations().items) == sorted([one, two])
        assert texts(owned.find_by_conversation_id(one)) == texts(said(1, "one"))
        owned.save_all(one, [])
        assert texts(owned.find_by_conversation_id(two)) == texts(said(2, "two"))
        assert owned.delete_by_conversation_id(one) is True
        assert owned.find_conversation_ids() == [two]
        assert owned.count_messages(two) == 2

    @pytest.mark.parametrize("kind", DIFFERENT_IDS)
    def test_two_owners_are_two_owners(self, opened: Opened, conversation_id: str, kind: str) -> None:
        """The same pairs as owners, over one conversation id."""
        run = new_id("owner")[:60]
        one, two = (opened().for_owner(f"{run}-{name}") for name in DIFFERENT_IDS[kind])
        one.append(conversation_id, said(1, "one"))
        assert two.find_by_conversation_id(conversation_id) == []
        assert two.find_conversation_ids() == []
        assert two.delete_by_conversation_id(conversation_id) is False
        two.append(conversation_id, said(2, "two"))
        assert one.count_messages(conversation_id) == 1

    @pytest.mark.parametrize("kind", DIFFERENT_IDS)
    def test_two_message_ids_are_two_messages(
        self, repository: ChatMemoryRepository, conversation_id: str, kind: str
    ) -> None:
        """The same pairs as message ids within one conversation."""
        messages = [Message.user(f"line {n}", id=name) for n, name in enumerate(DIFFERENT_IDS[kind])]
        repository.append(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert repository.delete_messages(conversation_id, [messages[0].id]) == 1
        assert repository.find_by_conversation_id(conversation_id) == messages[1:]

    def test_odd_ids_are_ids_like_others(self, owned: ChatMemoryRepository) -> None:
        """Ids that look like SQL, CQL, Cypher, paths and wildcards, or have 255 characters, side by side."""
        for n, name in enumerate(ODD_IDS):
            owned.append(name, said(1, f"of {n}"))
        assert sorted(owned.find_conversation_ids()) == sorted(ODD_IDS)
        for n, name in enumerate(ODD_IDS):
            assert texts(owned.find_by_conversation_id(name)) == texts(said(1, f"of {n}"))
            conversation = owned.get_conversation(name)
            assert conversation is not None
            assert conversation.id == name
        for n, name in enumerate(ODD_IDS):
            assert owned.delete_by_conversation_id(name) is True
            assert len(owned.find_conversation_ids()) == len(ODD_IDS) - n - 1

    def test_odd_owners_are_owners_like_others(self, opened: Opened, conversation_id: str) -> None:
        """The same ids as owners; those that others use in a shared namespace are cleared away again."""
        root = opened()
        for name in ODD_IDS:
            owner = root.for_owner(name)
            assert owner.owner == name
            owner.append(conversation_id, said(1, name[:20]))
        for name in ODD_IDS:
            owner = root.for_owner(name)
            assert texts(owner.find_by_conversation_id(conversation_id)) == texts(said(1, name[:20]))
            assert owner.delete_by_conversation_id(conversation_id) is True

    def test_odd_message_ids_are_ids_like_others(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """The same ids as message ids."""
        messages = [Message.user(f"line {n}", id=name) for n, name in enumerate(ODD_IDS)]
        repository.append(conversation_id, messages)
        repository.append(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert repository.delete_messages(conversation_id, ["%", "_", "*"]) == 3
        assert repository.count_messages(conversation_id) == len(ODD_IDS) - 3

    def test_the_directory_pages_through_odd_ids(self, owned: ChatMemoryRepository) -> None:
        """Each id once, in one order, whatever the size of the page."""
        ids = list(dict.fromkeys([*ODD_IDS, *(name for pair in DIFFERENT_IDS.values() for name in pair)]))
        for name in ids:
            owned.save_all(name, [])
        assert owned.find_conversation_ids() == sorted(ids), "binary comparison is the order of code points in UTF-8"
        for size in (1, 7, 1000):
            found, cursor = [], None
            while True:
                page = owned.list_conversations(limit=size, cursor=cursor)
                found += [conversation.id for conversation in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert found == sorted(ids), size

    @pytest.mark.parametrize("kind", BAD_IDS)
    def test_what_is_no_id_is_refused_by_every_call(
        self, harness: Harness, repository: ChatMemoryRepository, kind: str
    ) -> None:
        """InvalidConversationIdError, a ValueError, before any statement; there is no hidden default id."""
        with harness.statements() as sent:
            for call in CALLS.values():
                with pytest.raises(InvalidConversationIdError):
                    call(repository, conversation_id=BAD_IDS[kind])
        assert sent == []
        assert issubclass(InvalidConversationIdError, ValueError)

    @pytest.mark.parametrize("kind", BAD_IDS)
    def test_what_is_no_message_id_is_refused(
        self, repository: ChatMemoryRepository, conversation_id: str, kind: str
    ) -> None:
        """When the message is made, and in delete_messages."""
        bad: Any = BAD_IDS[kind]
        with pytest.raises(InvalidMessageError, match="message id"):
            Message.user("Hi", id=bad)
        messages = said(2)
        repository.append(conversation_id, messages)
        with pytest.raises(InvalidMessageError, match="message id"):
            repository.delete_messages(conversation_id, [messages[0].id, bad])
        assert repository.count_messages(conversation_id) == 2

    def test_message_ids_are_a_list(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """One str is iterable and still no list of ids."""
        repository.append(conversation_id, [Message.user("Hi", id="a"), Message.user("Hi", id="b")])
        for bad in ("ab", None, 1):
            with pytest.raises(TypeError, match="message_ids"):
                repository.delete_messages(conversation_id, bad)  # type: ignore[arg-type]
        assert repository.count_messages(conversation_id) == 2

    @pytest.mark.parametrize("kind", [kind for kind in BAD_IDS if kind != "empty"])
    def test_what_is_no_owner_is_refused(
        self, harness: Harness, form: Form, namespace: str, repository: ChatMemoryRepository, kind: str
    ) -> None:
        """InvalidOwnerError from for_owner; the empty owner alone is allowed: nobody is named."""
        bad: Any = BAD_IDS[kind]
        with pytest.raises(InvalidOwnerError):
            repository.for_owner(bad)
        if bad is not None:  # None means "not given" when opening
            with pytest.raises((ConfigurationError, InvalidOwnerError), match="owner"):
                harness.open(form, namespace, owner=bad)
        assert repository.for_owner("").owner == ""

    def test_every_call_needs_an_id(self, repository: ChatMemoryRepository) -> None:
        """No method has a default conversation."""
        for name in ("find_by_conversation_id", "history", "count_messages", "delete_by_conversation_id"):
            with pytest.raises(TypeError):
                getattr(repository, name)()

    @in_one_repository
    @given(one=strategies.ids, two=strategies.ids)
    def test_generated_ids_are_told_apart(self, repository: ChatMemoryRepository, one: str, two: str) -> None:
        """Any two ids that are not equal."""
        owner = repository.for_owner(new_id("owner"))
        owner.save_all(one, said(1, "one"))
        if one != two:
            assert owner.find_by_conversation_id(two) == []
            owner.save_all(two, said(1, "two"))
        assert sorted(owner.find_conversation_ids()) == sorted({one, two})
        assert texts(owner.find_by_conversation_id(one)) == texts(said(1, "one"))
