"""C7 memory is not history, as far as the repository goes: a limit is a view, and the log is kept whole."""

from __future__ import annotations

from chatkeep import ChatMemoryRepository
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import messages_of, new_id, said, whole_history


class TestC07LogIsWhole:
    """Looking at the newest ten of fifty deletes none of the forty."""

    def test_a_window_deletes_nothing(self, opened: Opened, conversation_id: str) -> None:
        """After window reads of every size the log, the count and a larger window have all messages."""
        repository = opened()
        messages = said(50)
        for message in messages:
            repository.append(conversation_id, message)
            assert repository.find_by_conversation_id(conversation_id, limit=10)[-1] == message
        assert repository.find_by_conversation_id(conversation_id, limit=10) == messages[-10:]
        assert repository.count_messages(conversation_id) == 50
        assert repository.find_by_conversation_id(conversation_id, limit=40) == messages[-40:]
        assert messages_of(whole_history(repository, conversation_id)) == messages
        again = opened()
        assert again.find_by_conversation_id(conversation_id) == messages
        assert again.count_messages(conversation_id) == 50

    @needs("stored_messages")
    def test_every_message_lies_in_the_store(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Counted behind the backend's back: fifty rows, each once."""
        for message in said(50):
            repository.append(conversation_id, message)
            repository.find_by_conversation_id(conversation_id, limit=10)
        assert harness.stored_messages(namespace, conversation_id) == 50

    @needs("stored_messages")
    def test_only_what_is_named_is_deleted(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """`delete_messages` takes the named ids, counts them, and passes over unknown and repeated ones."""
        messages = said(6)
        version = repository.append(conversation_id, messages)
        ids = [messages[1].id, messages[4].id]
        assert repository.delete_messages(conversation_id, [*ids, ids[0], new_id("unknown")]) == 2
        assert repository.find_by_conversation_id(conversation_id) == [messages[n] for n in (0, 2, 3, 5)]
        assert harness.stored_messages(namespace, conversation_id) == 4
        changed = repository.append(conversation_id, [])
        assert changed > version
        assert repository.delete_messages(conversation_id, ids) == 0
        assert repository.delete_messages(conversation_id, []) == 0
        assert repository.append(conversation_id, []) == changed, "nothing was deleted, yet the version grew"

    def test_an_emptied_conversation_stays_listed(self, owned: ChatMemoryRepository, conversation_id: str) -> None:
        """Deleting its last message is no deletion of the conversation."""
        messages = said(2)
        owned.append(conversation_id, messages)
        assert owned.delete_messages(conversation_id, (message.id for message in messages)) == 2
        assert owned.find_conversation_ids() == [conversation_id]
        assert owned.count_messages(conversation_id) == 0

    def test_a_deleted_message_may_be_appended_again(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Its id is free again, and it goes to the end."""
        messages = said(3)
        repository.append(conversation_id, messages)
        repository.delete_messages(conversation_id, [messages[0].id])
        repository.append(conversation_id, messages[0])
        assert repository.find_by_conversation_id(conversation_id) == [*messages[1:], messages[0]]
