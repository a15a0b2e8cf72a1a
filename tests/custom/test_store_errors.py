"""Faults of a store, and what the caller of the repository sees of them."""

from collections.abc import Iterable
from typing import Any

import pytest

from chatkeep import (
    ConfigurationError,
    ContentionError,
    InvalidMessageError,
    Message,
    MessageTooLargeError,
    Outcome,
    StorageError,
    StoredDataError,
)
from chatkeep.custom import repository_over
from tests.custom.stores import DictStore


def said(count: int, prefix: str = "line") -> list[Message]:
    return [Message.user(f"{prefix} {number}") for number in range(count)]


class Failing(DictStore):
    fails_in = ""
    error: Exception = RuntimeError("secret text of a message")

    def _maybe(self, verb: str) -> None:
        if verb == self.fails_in:
            raise self.error

    def find_conversation_ids(self) -> Iterable[str]:
        self._maybe("find_conversation_ids")
        return super().find_conversation_ids()

    def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
        self._maybe("find_by_conversation_id")
        return super().find_by_conversation_id(conversation_id)

    def save_all(self, conversation_id: str, messages: list[Message]) -> None:
        self._maybe("save_all")
        super().save_all(conversation_id, messages)

    def delete_by_conversation_id(self, conversation_id: str) -> None:
        self._maybe("delete_by_conversation_id")
        super().delete_by_conversation_id(conversation_id)


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        ("find_conversation_ids", Outcome.NOT_APPLIED),
        ("find_by_conversation_id", Outcome.NOT_APPLIED),
        ("save_all", Outcome.UNKNOWN),
        ("delete_by_conversation_id", Outcome.UNKNOWN),
    ],
)
def test_an_error_of_the_store_is_a_storage_error_with_its_cause(verb: str, outcome: Outcome) -> None:
    store = Failing()
    with repository_over(store) as repository:
        repository.append("thread", said(1))
        store.fails_in = verb
        calls: dict[str, Any] = {
            "find_conversation_ids": repository.find_conversation_ids,
            "find_by_conversation_id": lambda: repository.find_by_conversation_id("thread"),
            "save_all": lambda: repository.save_all("thread", said(1)),
            "delete_by_conversation_id": lambda: repository.delete_by_conversation_id("thread"),
        }
        with pytest.raises(StorageError, match=verb) as caught:
            calls[verb]()
        assert caught.value.__cause__ is store.error
        assert caught.value.outcome is outcome
        assert caught.value.backend == "Failing"
        assert "secret" not in str(caught.value)


def test_chatkeep_errors_of_the_store_pass_and_contention_is_retried() -> None:
    class Busy(DictStore):
        refusals = 2

        def save_all(self, conversation_id: str, messages: list[Message]) -> None:
            if self.refusals:
                self.refusals -= 1
                raise ContentionError("someone holds the lock")
            super().save_all(conversation_id, messages)

    store = Failing()
    store.fails_in, store.error = "find_by_conversation_id", StoredDataError("broken", conversation_id="x", position=3)
    with repository_over(store) as repository, pytest.raises(StoredDataError, match="broken"):
        repository.find_by_conversation_id("thread")
    busy = Busy()
    with repository_over(busy) as repository:
        repository.append("thread", said(2))
        assert repository.count_messages("thread") == 2
        assert busy.refusals == 0


@pytest.mark.parametrize("answer", [None, "text", b"bytes", {"a": 1}, [None], ["text"], [{"role": "user"}], 3])
def test_an_answer_that_is_no_list_of_messages_is_a_storage_error(answer: Any) -> None:
    class Wrong(DictStore):
        def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
            return answer  # type: ignore[no-any-return]

    with repository_over(Wrong()) as repository:
        with pytest.raises(StorageError, match="list of Message"):
            repository.find_by_conversation_id("thread")


def test_a_generator_that_breaks_is_translated_too() -> None:
    class Generating(DictStore):
        def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
            yield Message.user("fine")
            raise OSError("the disk")

    with repository_over(Generating()) as repository, pytest.raises(StorageError, match="OSError") as caught:
        repository.find_by_conversation_id("thread")
    assert isinstance(caught.value.__cause__, OSError)


def test_stored_dicts_that_are_no_messages_are_stored_data_errors_and_can_be_deleted() -> None:
    class Dicts(DictStore):
        def find_by_conversation_id(self, conversation_id: str) -> Iterable[Message]:
            return [Message.from_dict(each) for each in [{"role": "user", "parts": [{"type": "hologram"}]}]]

    store = Dicts()
    store.saved["thread"] = []
    with repository_over(store) as repository:
        with pytest.raises(StoredDataError, match="hologram") as caught:
            repository.find_by_conversation_id("thread")
        assert caught.value.conversation_id == "thread"
        assert repository.delete_by_conversation_id("thread") is True
        assert store.saved == {}


def test_messages_that_were_changed_in_the_store_beyond_storing_are_stored_data_errors() -> None:
    store = DictStore()
    with repository_over(store) as repository:
        repository.append("thread", Message.user("Hi", metadata={"a": 1}))
        store.saved["thread"][0].metadata["a"] = {1, 2}
        with pytest.raises(StoredDataError, match=r"metadata\.a"):
            repository.find_by_conversation_id("thread")


def test_checks_come_before_the_store_is_asked() -> None:
    store = Failing()
    store.fails_in, store.error = "find_by_conversation_id", AssertionError("asked")
    with repository_over(store) as repository:
        with pytest.raises(MessageTooLargeError):
            repository.append("thread", Message.user("x" * 70_000))  # the default claims 65,536 bytes
        with pytest.raises(TypeError):
            repository.append("thread", "text")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="control"):
            repository.append("a\nb", said(1))


def test_another_content_under_a_stored_id_is_refused_and_nothing_stored() -> None:
    store = DictStore()
    message = Message.user("one")
    with repository_over(store) as repository:
        version = repository.append("thread", message)
        assert repository.append("thread", message) == version
        with pytest.raises(InvalidMessageError, match="another content"):
            repository.append("thread", [Message.user("new"), Message.user("two", id=message.id)])
        assert store.saved["thread"] == [message]


def test_a_coroutine_method_in_a_synchronous_store_is_refused() -> None:
    class Mixed(DictStore):
        async def save_all(self, conversation_id: str, messages: list[Message]) -> None:  # type: ignore[override]
            raise AssertionError

    with repository_over(Mixed()) as repository, pytest.raises(ConfigurationError, match="AsyncChatMemoryStore"):
        repository.append("thread", said(1))
