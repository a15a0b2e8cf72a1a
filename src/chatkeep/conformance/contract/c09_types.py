"""C9 own type mapping: the same Python value comes back from every engine, or is refused with its path."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import math
import uuid
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, Message, Opaque
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import said


class Colour(enum.Enum):
    """A value of an application's own type."""

    RED = "red"


class Word(str):
    """A str that may compare in its own way."""

    __slots__ = ()


class Level(enum.IntEnum):
    """An int that is none."""

    HIGH = 3


VALUES: dict[str, Any] = {
    "none": None,
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "minus one": -1,
    "above 32 bits": 2**31,
    "above a double's integers": 2**53 + 1,
    "largest of 64 bits": 2**63 - 1,
    "smallest of 64 bits": -(2**63),
    "above 63 bits": 2**63,
    "above 64 bits": 2**64 + 1,
    "below 64 bits": -(2**64) - 1,
    "hundreds of digits": 10**300 + 7,
    "float of a whole number": 1.0,
    "float zero": 0.0,
    "minus zero": -0.0,
    "a third": 0.1 + 0.2,
    "largest float": 1.7976931348623157e308,
    "smallest float": 5e-324,
    "negative exponent": 1e-7,
    "float above 64 bits": 1e22,
    "17 digits": 9007199254740993.0,
    "empty text": "",
    "text": "text",
    "text of a number": "1",
    "text of null": "null",
    "text of a time": "2026-06-01T12:00:00Z",
    "text of JSON": '{"a": 1}',
    "text with quotes": "'\"\\`$1 %s :x ?",
    "spaces": "  both ends  ",
    "empty list": [],
    "empty object": {},
    "list": [1, "1", 1.0, True, None, [], {}],
    "object": {"": 0, " a ": 1, "A": 2, "a": 3, "1": 4, "null": None},
    "nested": [[[{"a": [{"b": [None]}]}]]],
}

NOT_EQUAL: dict[str, Any] = {
    "tuple": (1, 2),
    "set": {1},
    "bytes": b"1",
    "bytearray": bytearray(b"1"),
    "datetime": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "date": dt.date(2026, 1, 1),
    "timedelta": dt.timedelta(1),
    "decimal": decimal.Decimal("1.5"),
    "uuid": uuid.UUID(int=1),
    "enum": Colour.RED,
    "int enum": Level.HIGH,
    "str subclass": Word("w"),
    "dict subclass": collections.OrderedDict(a=1),
    "complex": 1j,
    "object": object(),
    "function": len,
    "key of int": {1: 2},
    "key of None": {None: 1},
    "key of bool": {True: 1},
    "key of tuple": {(1,): 1},
    "key of str subclass": {Word("k"): 1},
    "message": Message.user("Hi"),
}

NO_JSON: dict[str, Any] = {
    "nan": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "an endless integer": 10**5000,
}


def same(one: Any, other: Any) -> bool:
    """Equality that tells 1 from True and from 1.0, and 0.0 from -0.0, and keeps the order of keys."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


class TestC09Types:
    """Values in message metadata, in opaque parts and in the conversation's metadata."""

    @pytest.mark.parametrize("call", ["append", "save_all"])
    def test_values_of_metadata_keep_their_type(
        self, repository: ChatMemoryRepository, conversation_id: str, call: str
    ) -> None:
        """Each value alone and inside a list, an object and an opaque part."""
        messages = [
            Message("user", (Opaque("x", value),), metadata={"value": value, "list": [value], "object": {"v": value}})
            for value in VALUES.values()
        ]
        getattr(repository, call)(conversation_id, messages)
        for name, value, found in zip(
            VALUES, VALUES.values(), repository.find_by_conversation_id(conversation_id), strict=True
        ):
            assert same(found.metadata, {"value": value, "list": [value], "object": {"v": value}}), name
            (part,) = found.parts
            assert isinstance(part, Opaque)
            assert same(part.data, value), name

    @needs("conversation_metadata")
    @pytest.mark.parametrize("name", VALUES)
    def test_values_of_conversation_metadata_keep_their_type(
        self, repository: ChatMemoryRepository, conversation_id: str, name: str
    ) -> None:
        """What update_conversation returns and what is read later."""
        repository.append(conversation_id, said(1))
        metadata = {"value": VALUES[name], "list": [VALUES[name]]}
        assert same(repository.update_conversation(conversation_id, metadata=metadata).metadata, metadata)
        conversation = repository.get_conversation(conversation_id)
        assert conversation is not None
        assert same(conversation.metadata, metadata)

    @pytest.mark.parametrize("name", [*NOT_EQUAL, *NO_JSON])
    def test_what_would_not_come_back_equal_is_refused(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str, name: str
    ) -> None:
        """TypeError, or ValueError for what no JSON has, naming the path, before any I/O: nothing stored or sent."""
        value = {**NOT_EQUAL, **NO_JSON}[name]
        error = TypeError if name in NOT_EQUAL else ValueError
        with pytest.raises(error, match=r"metadata\.a\[1\]"):
            Message.user("Hi", metadata={"a": [0, value]})
        with pytest.raises(error, match=r"data\.a\[1\]"):
            Opaque("x", {"a": [0, value]})
        # A container that was changed after its message was made meets the same check at the door.
        message = Message.user("Hi", metadata={"a": [0]})
        message.metadata["a"].append(value)
        opaque = Message("user", (Opaque("x", {"a": [0]}),))
        part = opaque.parts[0]
        assert isinstance(part, Opaque)
        part.data["a"].append(value)
        with harness.statements() as sent:
            for call in (repository.append, repository.save_all):
                with pytest.raises(error, match=r"messages\[1\]: metadata\.a\[1\]"):
                    call(conversation_id, [*said(1), message])
                with pytest.raises(error, match=r"messages\[1\]: parts\[0\]\.data\.a\[1\]"):
                    call(conversation_id, [*said(1), opaque])
        assert sent == []
        assert repository.get_conversation(conversation_id) is None

    @needs("conversation_metadata")
    @pytest.mark.parametrize("name", [*NOT_EQUAL, *NO_JSON])
    def test_what_would_not_come_back_equal_is_refused_for_conversations(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str, name: str
    ) -> None:
        """The conversation's metadata keeps what it had."""
        error = TypeError if name in NOT_EQUAL else ValueError
        repository.append(conversation_id, said(1))
        repository.update_conversation(conversation_id, metadata={"kept": True})
        with harness.statements() as sent:
            with pytest.raises(error, match=r"metadata\.a\[1\]"):
                repository.update_conversation(conversation_id, metadata={"a": [0, {**NOT_EQUAL, **NO_JSON}[name]]})
        assert sent == []
        conversation = repository.get_conversation(conversation_id)
        assert conversation is not None
        assert conversation.metadata == {"kept": True}

    @pytest.mark.parametrize("metadata", [None, [], "a", 1, [("a", 1)], b"{}"])
    def test_metadata_is_an_object(self, repository: ChatMemoryRepository, conversation_id: str, metadata: Any) -> None:
        """Of messages and of conversations."""
        with pytest.raises(TypeError, match="metadata"):
            Message.user("Hi", metadata=metadata)
        if repository.capabilities.conversation_metadata:
            repository.append(conversation_id, said(1))
            with pytest.raises(TypeError, match="metadata"):
                repository.update_conversation(conversation_id, metadata=metadata)

    def test_what_is_too_deep_is_refused(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Before any I/O and with a ValueError, never with a RecursionError, at any depth."""
        for depth in (300, 100_000):
            deep: list[Any] = []
            for _ in range(depth):
                deep = [deep]
            with pytest.raises(ValueError, match="levels"):
                Message.user("Hi", metadata={"deep": deep})
            message = Message.user("Hi", metadata={"deep": []})
            message.metadata["deep"].append(deep)
            with pytest.raises(ValueError, match="levels"):
                repository.append(conversation_id, message)
        assert repository.get_conversation(conversation_id) is None
