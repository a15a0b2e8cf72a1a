"""C11 nothing is cut: text and payloads up to the stated size work, and above it both numbers are told."""

from __future__ import annotations

import time

import pytest

from chatkeep import ChatMemoryRepository, Media, Message, MessageTooLargeError, Opaque, Thinking, ToolCall
from chatkeep.conformance.harness import Harness
from chatkeep.conformance.support import said

MEBIBYTE = 1024 * 1024
SIZES = [255, 256, 4000, 4001, 65_535, 65_536, MEBIBYTE, 8 * MEBIBYTE]
ALPHABETS = {"ascii": "abcdefghij", "cjk": "漢字かな交じり文", "emoji": "😀👩🏽‍🚀🇺🇳"}


def text_of(size: int, alphabet: str) -> str:
    """A text of `size` bytes in UTF-8, filled up with ASCII at its end, which marks that nothing was cut."""
    letters = ALPHABETS[alphabet]
    text = letters * ((size - 1) // len(letters.encode()))
    return text + "." * (size - len(text.encode()) - 1) + "!"


def fits(repository: ChatMemoryRepository, size: int) -> bool:
    """Whether a message of this size, with what encoding adds, is within the backend's declared limit."""
    return size * 1.4 + 1000 <= repository.capabilities.max_message_bytes


class TestC11NothingCut:
    """Sizes at which columns, packets and pages of one engine or another end."""

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("alphabet", ALPHABETS)
    def test_a_text_of_any_allowed_size_comes_back_whole(
        self, repository: ChatMemoryRepository, conversation_id: str, size: int, alphabet: str
    ) -> None:
        """In one plain text, counted in bytes of UTF-8."""
        text = text_of(size, alphabet)
        assert len(text.encode()) == size
        message = Message.user(text)
        if not fits(repository, size):
            with pytest.raises(MessageTooLargeError):
                repository.append(conversation_id, Message.user("x" * (repository.capabilities.max_message_bytes + 1)))
            return
        repository.append(conversation_id, message)
        (found,) = repository.find_by_conversation_id(conversation_id)
        assert len(found.text) == len(text)
        assert found == message

    @pytest.mark.parametrize("size", [4001, 65_536, MEBIBYTE])
    def test_payloads_beside_the_text_come_back_whole(
        self, repository: ChatMemoryRepository, conversation_id: str, size: int
    ) -> None:
        """Arguments, results, reasoning, media bytes, opaque data and metadata of the same sizes."""
        if not fits(repository, size):
            return
        cjk = text_of(size, "cjk")
        messages = [
            Message.assistant("Hi", tool_calls=[ToolCall("c", "f", '{"text": "' + cjk + '"}')]),
            Message.tool(cjk, call_id="c"),
            Message.assistant([Thinking(cjk, text_of(size, "ascii"))]),
            Message.user([Media("image/png", bytes(range(256)) * (size // 256))]),
            Message("user", (Opaque("x", [cjk]),)),
            Message.user("Hi", metadata={"text": text_of(size, "emoji")}),
        ]
        repository.save_all(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages

    def test_above_the_limit_both_numbers_are_told_before_any_statement(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """The limit is of the encoded message: text in bytes of UTF-8 and everything beside it."""
        limit = repository.capabilities.max_message_bytes
        too_large = {
            limit + 1: Message.user("x" * (limit + 1)),
            3 * (limit // 3 + 1): Message.user("漢" * (limit // 3 + 1)),
            None: Message.user([Media("image/png", b"x" * limit)]),
        }
        with harness.statements() as sent:
            for size, message in too_large.items():
                for call in (repository.append, repository.save_all):
                    with pytest.raises(MessageTooLargeError) as caught:
                        call(conversation_id, [*said(1), message])
                    assert caught.value.limit == limit
                    assert caught.value.size == size if size is not None else caught.value.size > limit
                    for number in (caught.value.size, limit):
                        assert f"{number:,}" in str(caught.value)
                    assert "messages[1]" in str(caught.value)
        assert sent == []
        assert repository.get_conversation(conversation_id) is None
        repository.append(conversation_id, said(1))
        assert repository.count_messages(conversation_id) == 1

    def test_the_limit_itself_is_allowed(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """To the last byte."""
        message = Message.user(text_of(repository.capabilities.max_message_bytes, "ascii"))
        repository.append(conversation_id, message)
        (found,) = repository.find_by_conversation_id(conversation_id)
        assert found == message

    def test_checking_a_value_takes_time_by_its_size(self) -> None:
        """A long key over many items: the text of a path is made when an error needs it, not for every item."""
        began = time.perf_counter()
        Message.user("Hi", metadata={"k" * 1_000_000: [0] * 20_000})
        assert time.perf_counter() - began < 2

    def test_a_long_call_of_many_messages_comes_back_whole(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Three thousand messages in one call: more than the parameters that some engines take in a statement."""
        messages = said(3000)
        repository.append(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        repository.save_all(conversation_id, messages[::-1])
        assert repository.find_by_conversation_id(conversation_id) == messages[::-1]
        assert repository.delete_messages(conversation_id, [message.id for message in messages[:2900]]) == 2900
        assert repository.count_messages(conversation_id) == 100
