"""Message <-> dict <-> row: nothing is lost, nothing is guessed, and what can't be read says so."""

import copy
import datetime as dt
import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given

from chatkeep import (
    InvalidMessageError,
    Media,
    Message,
    MessageTooLargeError,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnstorableValueError,
)
from chatkeep.conformance import strategies
from chatkeep.message import MAX_RESULT_DEPTH
from chatkeep.storage import codec, jsontext
from chatkeep.storage.record import MessageRecord
from chatkeep.values import MAX_DEPTH

NOON = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
BIG = sys.maxsize


def encoded(message: Message) -> MessageRecord:
    return codec.encode(message, "message", BIG)


class TestRoundTrip:
    @given(strategies.messages)
    def test_any_message_comes_back_equal_from_its_row(self, message: Message) -> None:
        record = encoded(message)
        found = codec.decode(record, "c")
        assert found == message
        # 1 and 1.0, or 0.0 and -0.0, are equal in Python and not the same.
        assert json.dumps(found.to_dict()) == json.dumps(message.to_dict())
        # What every engine can store: UTF-8 without NUL.
        for text in (record.content, record.body or ""):
            assert "\0" not in text
            text.encode()
        assert encoded(found) == record
        assert codec.same_content(record, encoded(found))

    @given(strategies.messages)
    def test_any_message_comes_back_equal_from_its_dict_form_and_through_json(self, message: Message) -> None:
        data = message.to_dict()
        assert Message.from_dict(data) == message
        assert Message.from_dict(json.loads(json.dumps(data))) == message
        assert data == message.to_dict(), "reading changed the dict"

    @given(strategies.json_values)
    def test_any_json_value_has_one_text(self, value: Any) -> None:
        text = jsontext.dump_json(value)
        assert json.dumps(jsontext.load_json(text)) == json.dumps(value) == json.dumps(json.loads(text))

    @pytest.mark.parametrize("number", [1, 1.0, True, -0.0, 0.0, 2**63, 2**64, -(10**400), 1e16, 5e-324, 0.1 + 0.2])
    def test_numbers_keep_kind_and_value(self, number: Any) -> None:
        found = codec.decode(encoded(Message.user("x", metadata={"n": number})), "c").metadata["n"]
        assert (type(found), repr(found)) == (type(number), repr(number))

    def test_numbers_keep_kind_beside_a_lone_surrogate(self) -> None:
        numbers = [1, 1.0, -0.0, 2**70, 1e300]
        found = codec.decode(encoded(Message.user("x", metadata={"n": numbers, "t": "\ud800"})), "c").metadata["n"]
        assert repr(found) == repr(numbers)

    def test_none_and_empty_stay_apart(self) -> None:
        for message in (
            Message("assistant", (Thinking("", None), Thinking("", ""))),
            Message("tool", (ToolResult("", "", None), ToolResult("", "", ""), ToolResult("", ()))),
            Message("user", (Media("", b""), Media("", url=""), Media("", b"", name=""))),
            Message.user("", name=""),
            Message.user(""),
            Message("user"),
            Message("user", (Opaque("x", None), Opaque("x", ""), Opaque("x", {}), Opaque("x", []))),
        ):
            assert codec.decode(encoded(message), "c") == message
            assert Message.from_dict(message.to_dict()) == message

    def test_the_deepest_values_come_back_from_both_forms(self) -> None:
        deepest: Any = {}
        for _ in range(MAX_DEPTH - 1):
            deepest = {"k": deepest}
        result = ToolResult("c", (Opaque("x", deepest),))
        for _ in range(MAX_RESULT_DEPTH - 1):
            result = ToolResult("c", (result,))
        message = Message("tool", (result,), metadata=deepest)
        assert codec.decode(encoded(message), "c") == message
        assert Message.from_dict(message.to_dict()) == message

    def test_nothing_is_shared_between_a_message_and_its_dict_form(self) -> None:
        message = Message("user", (Opaque("x", {"a": [1]}),), metadata={"a": [1]}, extra={"b": {}})
        before = copy.deepcopy(message)
        data = message.to_dict()
        again = Message.from_dict(data)
        data["metadata"]["a"].append(2)
        data["parts"][0]["data"]["a"].append(2)
        data["b"]["x"] = 1
        assert message == before == again


class TestContent:
    """The content column is for people and for search."""

    @pytest.mark.parametrize(
        ("parts", "content"),
        [
            ((Text("Hi"),), "Hi"),
            ((Text("one"), Text("two")), "one\ntwo"),
            ((Text(""), Text("two")), "\ntwo"),
            ((Text("see"), ToolCall("c", "f", "{}"), Media("a/b", b"x")), "see"),
            ((ToolResult("c", "sunny"),), "sunny"),
            ((ToolResult("c", (Text("a"), Media("a/b", b""), ToolResult("d", "b"))), Text("c")), "a\nb\nc"),
            ((Thinking("private"), Opaque("x", "y")), ""),
            ((), ""),
            ((Text("a\0b\ud800c\udfff"),), "a\ufffdb\ufffdc\ufffd"),
            ((ToolResult("c", "\0"),), "\ufffd"),
            ((Text("real \ufffd"),), "real \ufffd"),
            ((Text("👩‍👩‍👧 שלום \ufeff"),), "👩‍👩‍👧 שלום \ufeff"),
        ],
    )
    def test_it_reads_as_the_texts_of_the_message(self, parts: tuple[Any, ...], content: str) -> None:
        message = Message("user", parts)
        assert encoded(message).content == content
        assert codec.decode(encoded(message), "c") == message

    @pytest.mark.parametrize(
        "message",
        [Message.user("plain"), Message.user(""), Message.system("x"), Message("critic", (Text("é😀"),))],
    )
    def test_a_plain_text_has_no_body(self, message: Message) -> None:
        assert encoded(message).body is None

    @pytest.mark.parametrize(
        "message",
        [
            Message.user("plain", name=""),
            Message.user("plain", metadata={"a": 1}),
            Message("user", (Text("plain"),), extra={"a": 1}),
            Message("user", (Text("plain", {"a": 1}),)),
            Message.assistant("plain", tool_calls=[ToolCall("c", "f")]),
            Message.tool("plain", call_id="c"),
        ],
    )
    def test_the_one_text_of_a_message_is_stored_once(self, message: Message) -> None:
        record = encoded(message)
        assert record.content == "plain"
        assert "plain" not in (record.body or "")
        assert codec.decode(record, "c") == message

    @pytest.mark.parametrize(
        "message",
        [
            Message.user([Text("same"), Text("same")]),
            Message.user([Text("one"), Text("")]),
            Message("tool", (ToolResult("c", (Text("inside"),)),)),
            Message("tool", (ToolResult("c", "a"), ToolResult("d", "b"))),
            Message.user([Text("nul \0")]),
        ],
    )
    def test_several_texts_and_replaced_ones_are_stored_whole(self, message: Message) -> None:
        record = encoded(message)
        assert codec.decode(msgspec.structs.replace(record, content="changed by a person"), "c") == message


class TestRefusals:
    """Everything that can't be kept is refused at encoding, with the path of the message in the call."""

    @pytest.mark.parametrize(
        ("value", "error"),
        [((1,), TypeError), ({1}, TypeError), (b"", TypeError), (NOON, TypeError), (float("nan"), ValueError)],
    )
    def test_what_was_put_into_a_message_after_its_construction(self, value: Any, error: type[Exception]) -> None:
        metadata = Message.user("x", metadata={"a": [0]})
        metadata.metadata["a"].append(value)
        extra = Message("user", (Text("x", {"a": {}}),))
        extra.parts[0].extra["a"]["b"] = value  # type: ignore[union-attr]
        opaque = Message("user", (Text("x"), Opaque("o", {"a": 1})))
        opaque.parts[1].data["a"] = value  # type: ignore[union-attr]
        result = Message("tool", (ToolResult("c", (Opaque("o", [0]),)),))
        result.parts[0].content[0].data.append(value)  # type: ignore[union-attr]
        for message, path in (
            (metadata, r"metadata\.a\[1\]"),
            (extra, r"parts\[0\]\.extra\.a\.b"),
            (opaque, r"parts\[1\]\.data\.a"),
            (result, r"parts\[0\]\.content\[0\]\.data\[1\]"),
        ):
            with pytest.raises(error, match=rf"^messages\[3\]: {path}: "):
                codec.encode(message, "messages[3]", BIG)
            with pytest.raises(error, match=rf"^{path}: "):
                message.to_dict()

    def test_what_was_put_into_an_empty_container_is_seen(self) -> None:
        message = Message.user("x")
        message.metadata["later"] = 1
        assert codec.decode(encoded(message), "c") == message
        message.metadata["worse"] = {1}
        with pytest.raises(UnstorableValueError, match=r"metadata\.worse"):
            encoded(message)

    @pytest.mark.parametrize("value", [None, "text", {"role": "user"}, 1, [Message.user("x")], Text("x")])
    def test_what_is_no_message(self, value: Any) -> None:
        with pytest.raises(TypeError, match=r"^messages\[0\]: expected a Message"):
            codec.encode(value, "messages[0]", BIG)

    @pytest.mark.parametrize(
        ("text", "size"), [("x" * 100, 100), ("é" * 50, 100), ("😀" * 25, 100), ("你" * 33 + "x", 100)]
    )
    def test_sizes_count_utf_8_bytes(self, text: str, size: int) -> None:
        assert codec.encode(Message.user(text), "m", size).content == text
        with pytest.raises(MessageTooLargeError, match=r"^messages\[1\]: .* 100 bytes.* 99;") as caught:
            codec.encode(Message.user(text), "messages[1]", size - 1)
        assert (caught.value.size, caught.value.limit) == (100, 99)

    def test_sizes_count_the_body_too(self) -> None:
        message = Message.user([Text("x" * 10), Media("image/png", b"y" * 300)])
        record = encoded(message)
        size = len(record.content) + len(record.body or "")
        assert size > 10 + 400
        codec.encode(message, "m", size)
        with pytest.raises(MessageTooLargeError):
            codec.encode(message, "m", size - 1)

    def test_results_that_nest_without_end_by_force(self) -> None:
        result = ToolResult("c", (Text("x"),))
        for _ in range(5000):  # past the constructor, which refuses at 33
            outer = ToolResult("c", (Text("x"),))
            msgspec.structs.force_setattr(outer, "content", (result,))
            result = outer
        message = Message("tool", (ToolResult("c"),))
        msgspec.structs.force_setattr(message, "parts", (result,))
        with pytest.raises(InvalidMessageError, match=r"^messages\[0\]: nested deeper"):
            codec.encode(message, "messages[0]", BIG)


class TestSameContent:
    """Whether an append that is repeated brings the same message."""

    @staticmethod
    def same(one: Message, other: Message) -> bool:
        return codec.same_content(encoded(one), encoded(other))

    def test_the_creation_time_and_the_order_of_keys_make_no_difference(self) -> None:
        one = Message.user("x", metadata={"a": 1, "b": {"c": 2, "d": 3}}, created_at=NOON)
        assert self.same(one, Message.user("x", metadata={"b": {"d": 3, "c": 2}, "a": 1}))

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Message.user("x"), Message.user("y")),
            (Message.user("x"), Message.system("x")),
            (Message.user("x"), Message.user("x", name="")),
            (Message.user("x"), Message.user("x", metadata={"a": 1})),
            (Message.user("x", metadata={"a": 1}), Message.user("x", metadata={"a": 1.0})),
            (Message.user("x", metadata={"a": 1}), Message.user("x", metadata={"a": True})),
            (Message.user("x", metadata={"a": 0.0}), Message.user("x", metadata={"a": -0.0})),
            (Message.user("x", metadata={"a": [1, 2]}), Message.user("x", metadata={"a": [2, 1]})),
            (Message.user("x"), Message.user([Text("x"), Text("")])),
            (Message.user([Text("a"), Text("b")]), Message.user("a\nb")),
            (Message.user("\0"), Message.user("\ufffd")),
            (Message.user("\0"), Message.user(chr(0xD800))),
            (Message.tool("x", call_id="c"), Message.tool([Text("x")], call_id="c")),
        ],
    )
    def test_every_other_difference_counts(self, one: Message, other: Message) -> None:
        assert not self.same(one, other)
        assert not self.same(other, one)
