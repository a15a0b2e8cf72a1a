"""C4 idempotence: `save_all` replaces, `append` appends, and a retry after an unknown outcome is safe."""

from __future__ import annotations

from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, ConcurrentChangeError, InvalidMessageError, Message, Outcome, StorageError
from chatkeep.conformance.faults import reply_lost
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs, require
from chatkeep.conformance.support import in_threads, new_id, said, whole_history


class TestC04Idempotence:
    """The same call once more is the same as once."""

    def test_an_append_repeated_stores_nothing_more(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """It succeeds with the current version, however often it is repeated."""
        messages = said(3)
        version = repository.append(conversation_id, messages)
        before = whole_history(repository, conversation_id)
        for _ in range(3):
            assert repository.append(conversation_id, messages) == version
        assert repository.append(conversation_id, messages[1]) == version
        assert whole_history(repository, conversation_id) == before
        later = repository.append(conversation_id, said(1, "later"))
        assert repository.append(conversation_id, messages) == later

    def test_an_append_that_is_partly_stored_adds_the_rest(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Stored messages keep their place, new ones go to the end in the order of the call."""
        messages = said(6)
        repository.append(conversation_id, [messages[1], messages[3]])
        repository.append(conversation_id, messages)
        expected = [messages[n] for n in (1, 3, 0, 2, 4, 5)]
        assert repository.find_by_conversation_id(conversation_id) == expected
        assert repository.count_messages(conversation_id) == 6

    @needs("conditional_writes")
    def test_a_repeated_append_succeeds_with_a_stale_version(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """All its ids are stored under the same content, so it is done; what is partly stored is not."""
        messages = said(2)
        version = repository.append(conversation_id, messages, expected_version=0)
        assert repository.append(conversation_id, messages, expected_version=0) == version
        later = repository.append(conversation_id, said(1, "later"))
        assert repository.append(conversation_id, messages, expected_version=version) == later
        with pytest.raises(ConcurrentChangeError):
            repository.append(conversation_id, [*messages, Message.user("more")], expected_version=version)
        assert repository.count_messages(conversation_id) == 3

    @pytest.mark.parametrize(
        "change",
        [
            {"parts": Message.user("other").parts},
            {"role": "assistant"},
            {"name": "someone"},
            {"metadata": {"a": 2}},
            {"metadata": {}},
        ],
        ids=["text", "role", "name", "metadata", "no metadata"],
    )
    def test_another_content_under_a_stored_id_is_refused(
        self, repository: ChatMemoryRepository, conversation_id: str, change: dict[str, Any]
    ) -> None:
        """It is never stored over or beside the first, and nothing else of the call is stored either."""
        first = Message("user", Message.user("first").parts, metadata={"a": 1})
        version = repository.append(conversation_id, first)
        fields = {"role": "user", "parts": first.parts, "metadata": {"a": 1}, "name": None, **change}
        other = Message(id=first.id, **fields)
        for call in ([other], [Message.user("new"), other], [other, Message.user("new")]):
            with pytest.raises(InvalidMessageError, match=first.id):
                repository.append(conversation_id, call)
        assert repository.find_by_conversation_id(conversation_id) == [first]
        assert repository.append(conversation_id, []) == version

    def test_the_creation_time_is_no_content(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """A retry that builds the message anew under its id is a repeat; the first time stays."""
        first = Message.user("Hi", id=new_id("message"), metadata={"a": 1, "b": [2]})
        again = Message.user("Hi", id=first.id, metadata={"b": [2], "a": 1})
        assert first.created_at != again.created_at
        version = repository.append(conversation_id, first)
        assert repository.append(conversation_id, again) == version
        assert repository.find_by_conversation_id(conversation_id)[0].created_at == first.created_at

    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_an_id_twice_in_one_call(self, repository: ChatMemoryRepository, conversation_id: str, call: str) -> None:
        """Stored once with the same content; refused before any I/O with different content."""
        one, two = said(2)
        getattr(repository, call)(conversation_id, [one, two, one])
        assert repository.find_by_conversation_id(conversation_id) == [one, two]
        other = new_id()
        with pytest.raises(InvalidMessageError, match=r"messages\[1\]"):
            getattr(repository, call)(other, [one, Message.user("something else", id=one.id)])
        assert repository.get_conversation(other) is None

    def test_one_id_may_stand_in_two_conversations(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Message ids are unique within a conversation; a fork or a copy keeps them."""
        message = Message.user("shared")
        other = new_id()
        repository.append(conversation_id, message)
        repository.append(other, message)
        repository.append(other, Message.user("different", id=new_id()))
        assert repository.find_by_conversation_id(conversation_id) == [message]
        assert repository.delete_messages(other, [message.id]) == 1
        assert repository.find_by_conversation_id(conversation_id) == [message]

    def test_nothing_to_append_is_a_no_op(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """It gives the current version, 0 for an unknown id, and creates no conversation."""
        assert repository.append(conversation_id, []) == 0
        assert repository.append(conversation_id, iter(())) == 0
        assert repository.get_conversation(conversation_id) is None
        assert conversation_id not in repository.find_conversation_ids()
        version = repository.append(conversation_id, said(2))
        before = repository.get_conversation(conversation_id)
        assert repository.append(conversation_id, []) == version
        assert repository.get_conversation(conversation_id) == before

    def test_replacing_twice_is_replacing_once(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """The second call gives the same list; what was there before is gone."""
        repository.append(conversation_id, said(5, "old"))
        new = said(3, "new")
        first = repository.save_all(conversation_id, new)
        second = repository.save_all(conversation_id, new)
        assert second >= first
        assert repository.find_by_conversation_id(conversation_id) == new
        assert repository.count_messages(conversation_id) == 3

    def test_replacing_may_keep_move_and_change_messages(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """The new list counts alone: old ids may come back, in another order and with another content."""
        one, two, three = said(3)
        repository.append(conversation_id, [one, two, three])
        changed = Message.user("another text", id=two.id)
        repository.save_all(conversation_id, [three, changed, one])
        assert repository.find_by_conversation_id(conversation_id) == [three, changed, one]

    def test_replacing_by_nothing_leaves_an_empty_conversation(
        self, owned: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """It stays listed with 0 messages; an unknown id becomes an empty conversation."""
        version = owned.append(conversation_id, said(2))
        other = new_id()
        assert owned.save_all(conversation_id, []) > version
        assert owned.save_all(other, []) > 0
        assert sorted(owned.find_conversation_ids()) == sorted([conversation_id, other])
        for emptied in (conversation_id, other):
            assert owned.find_by_conversation_id(emptied) == []
            assert owned.count_messages(emptied) == 0
            conversation = owned.get_conversation(emptied)
            assert conversation is not None
            assert conversation.message_count == 0
        owned.append(conversation_id, said(1, "again"))
        assert owned.count_messages(conversation_id) == 1

    @pytest.mark.parametrize("messages", ["Hi", b"Hi", {"role": "user"}, 3, None, [None], ["Hi"], [["Hi"]], [{}]])
    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_what_is_no_message_is_a_type_error(
        self, repository: ChatMemoryRepository, conversation_id: str, call: str, messages: Any
    ) -> None:
        """A `str` is iterable and still no list of messages."""
        with pytest.raises(TypeError, match="messages"):
            getattr(repository, call)(conversation_id, messages)
        assert repository.get_conversation(conversation_id) is None

    def test_the_same_append_at_the_same_time_is_stored_once(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Two workers that were handed the same delivery, at a conversation that does not exist yet."""
        messages = said(4)
        in_threads(8, lambda _: repository.append(conversation_id, messages))
        assert repository.find_by_conversation_id(conversation_id) == messages


class TestC04LostReply:
    """A write that happened although its reply never came."""

    @pytest.mark.parametrize("expected_version", [None, 0])
    def test_a_lost_append_is_repeated_and_stored_once(
        self,
        harness: Harness,
        repository: ChatMemoryRepository,
        conversation_id: str,
        expected_version: int | None,
    ) -> None:
        """Inside, so that the caller sees a success; also when it carried a version."""
        if expected_version is not None:
            require(harness, "conditional_writes")
        messages = said(3)
        with reply_lost(repository, "append") as happened:
            version = repository.append(conversation_id, messages, expected_version=expected_version)
        assert happened == ["lost", "done"]
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert version == repository.append(conversation_id, [])

    def test_a_lost_replacement_is_repeated(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """A replacement without a version is the same twice as once."""
        messages = said(3)
        with reply_lost(repository, "replace") as happened:
            version = repository.save_all(conversation_id, messages)
        assert happened == ["lost", "done"]
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert version == repository.append(conversation_id, [])

    @needs("conditional_writes")
    def test_a_lost_conditional_replacement_is_not_repeated(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """It couldn't tell its own success from another writer's: the caller is told that the outcome is unknown."""
        messages = said(3)
        with reply_lost(repository, "replace") as happened:
            with pytest.raises(StorageError) as caught:
                repository.save_all(conversation_id, messages, expected_version=0)
        assert happened == ["lost"]
        assert caught.value.outcome is Outcome.UNKNOWN
        assert repository.find_by_conversation_id(conversation_id) == messages

    def test_a_lost_deletion_is_repeated(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """True stands for "it is gone now"."""
        repository.append(conversation_id, said(2))
        with reply_lost(repository, "delete") as happened:
            assert repository.delete_by_conversation_id(conversation_id) is True
        assert happened == ["lost", "done"]
        assert repository.get_conversation(conversation_id) is None

    def test_a_lost_deletion_of_messages_is_not_repeated(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Its number would be wrong; the outcome is unknown."""
        messages = said(3)
        repository.append(conversation_id, messages)
        with reply_lost(repository, "delete_messages") as happened:
            with pytest.raises(StorageError) as caught:
                repository.delete_messages(conversation_id, [messages[0].id])
        assert happened == ["lost"]
        assert caught.value.outcome is Outcome.UNKNOWN
        assert repository.find_by_conversation_id(conversation_id) == messages[1:]

    @needs("dying_at_commit")
    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_a_session_that_dies_at_the_commit(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """The server ends the session while it commits: the call is repeated inside and stored once."""
        messages = [*said(2), Message.user(new_id("deadly"))]
        repository.append(conversation_id, said(1, "old"))
        with harness.dying_at_commit(namespace, messages[-1].text):
            getattr(repository, call)(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id)[-3:] == messages
        assert repository.count_messages(conversation_id) == (4 if call == "append" else 3)

    @needs("losing_reply")
    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_a_connection_cut_between_commit_and_reply(
        self, harness: Harness, namespace: str, opened: Opened, conversation_id: str, call: str
    ) -> None:
        """The engine has committed, the wire is cut: the call is repeated inside and stored once."""
        messages = [*said(2), Message.user(new_id("lost"))]
        with harness.losing_reply(namespace, messages[-1].text) as url:
            repository = opened(url)
            repository.append(conversation_id, said(1, "old"))
            version = getattr(repository, call)(conversation_id, messages)
        assert opened().append(conversation_id, []) == version
        found = opened().find_by_conversation_id(conversation_id)
        assert found[-3:] == messages
        assert len(found) == (4 if call == "append" else 3)
