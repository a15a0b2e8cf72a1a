"""Message <-> dict <-> row: nothing is lost, nothing is guessed, and what can't be read says so."""

import base64
import copy
import datetime as dt
import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatkeep import (
    InvalidMessageError,
    Media,
    Message,
    MessageTooLargeError,
    Opaque,
    StoredDataError,
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


def row(body: str | None, content: str = "", **fields: Any) -> MessageRecord:
    whole = {"message_id": "m", "role": "user", "created_at": NOON, "position": 7, **fields}
    return MessageRecord(content=content, body=body, **whole)


def body(*parts: Any, **fields: Any) -> str:
    return json.dumps({"format": "chatkeep/1", "parts": parts, **fields})


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


HOSTILE_BODIES = {
    "no JSON": "{",
    "empty": "",
    "truncated": body({"type": "text", "text": "x"})[:-3],
    "a list": "[]",
    "null": "null",
    "a number": "5",
    "text": '"x"',
    "NaN": '{"format":"chatkeep/1","parts":[],"metadata":{"a":NaN}}',
    "Infinity": '{"format":"chatkeep/1","parts":[],"metadata":{"a":-Infinity}}',
    "overflow": '{"format":"chatkeep/1","parts":[],"metadata":{"a":1e999}}',
    "an endless integer": '{"format":"chatkeep/1","parts":[],"metadata":{"a":' + "9" * 5000 + "}}",
    "an endless list": '{"format":"chatkeep/1","parts":' + "[" * 100_000 + "]" * 100_000 + "}",
    "endless results": (
        '{"format":"chatkeep/1","parts":[' + '{"type":"tool_result","call_id":"","content":[' * 400 + "]}" * 400 + "]}"
    ),
    "no format": '{"parts":[]}',
    "a future format": '{"format":"chatkeep/2","parts":[]}',
    "a foreign format": '{"format":1,"parts":[]}',
    "no parts": '{"format":"chatkeep/1"}',
    "parts null": '{"format":"chatkeep/1","parts":null}',
    "parts an object": '{"format":"chatkeep/1","parts":{}}',
    "a part that is text": body("x"),
    "a part that is null": body(None),
    "a part without type": body({"text": "x"}),
    "an unknown part": body({"type": "hologram"}),
    "a type that is a number": body({"type": 1}),
    "text that is a number": body({"type": "text", "text": 5}),
    "text that is null": body({"type": "text", "text": None}),
    "a call without id": body({"type": "tool_call", "name": "f", "arguments": ""}),
    "a call without name": body({"type": "tool_call", "id": "c", "arguments": ""}),
    "a call without arguments": body({"type": "tool_call", "id": "c", "name": "f"}),
    "arguments as an object": body({"type": "tool_call", "id": "c", "name": "f", "arguments": {}}),
    "a result without call_id": body({"type": "tool_result", "content": "x"}),
    "a result in a result without content": body(
        {"type": "tool_result", "call_id": "c", "content": [{"type": "tool_result", "call_id": "d"}]}
    ),
    "is_error as text": body({"type": "tool_result", "call_id": "c", "content": "", "is_error": "yes"}),
    "thinking without text": body({"type": "thinking"}),
    "media without anything": body({"type": "media", "mime_type": "a/b"}),
    "media with both": body({"type": "media", "mime_type": "a/b", "data": "", "url": ""}),
    "media without mime_type": body({"type": "media", "data": ""}),
    "data that is no base64": body({"type": "media", "mime_type": "a/b", "data": "***"}),
    "data that is no ASCII": body({"type": "media", "mime_type": "a/b", "data": "é"}),
    "data without padding": body({"type": "media", "mime_type": "a/b", "data": "QQ"}),
    "opaque without kind": body({"type": "opaque", "data": 1}),
    "opaque with more": body({"type": "opaque", "kind": "x", "data": 1, "more": 2}),
    "name that is a number": body(name=1),
    "metadata that is null": body(metadata=None),
    "metadata that is a list": body(metadata=[]),
    "a field of the row in the body": body(role="system"),
}


class TestUnreadable:
    @pytest.mark.parametrize("kind", HOSTILE_BODIES)
    def test_a_hostile_body_is_a_stored_data_error_that_names_the_row(self, kind: str) -> None:
        with pytest.raises(StoredDataError, match=r"conversation 'thread', position 7: unreadable message: ") as caught:
            codec.decode(row(HOSTILE_BODIES[kind]), "thread")
        assert (caught.value.conversation_id, caught.value.position) == ("thread", 7)

    @pytest.mark.parametrize("kind", HOSTILE_BODIES)
    def test_a_hostile_body_can_be_kept_as_an_opaque_part(self, kind: str) -> None:
        found = codec.decode(row(HOSTILE_BODIES[kind], "readable"), "thread", keep_unreadable=True)
        assert (found.id, found.role, found.created_at) == ("m", "user", NOON)
        (part,) = found.parts
        assert isinstance(part, Opaque)
        assert part.type == codec.UNREADABLE
        assert part.data["row"]["body"] == HOSTILE_BODIES[kind]
        assert part.data["row"]["content"] == "readable"
        assert part.data["reason"]
        assert codec.decode(encoded(found), "thread") == found

    @pytest.mark.parametrize(
        "fields",
        [
            {"role": ""},
            {"role": None},
            {"role": "a\nb"},
            {"message_id": ""},
            {"message_id": None},
            {"message_id": "x" * 300},
            {"created_at": None},
            {"created_at": "2026-01-01T00:00:00Z"},
            {"created_at": NOON.replace(tzinfo=None)},
            {"content": None},
            {"content": 5},
            {"body": 5},
            {"body": b"{}"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("text", [None, body({"type": "text"}, name="Ann")])
    def test_columns_of_another_kind_are_unreadable_too(self, fields: dict[str, Any], text: str | None) -> None:
        record = row(**{"content": "x", "body": text, **fields})
        with pytest.raises(StoredDataError, match="position 7"):
            codec.decode(record, "thread")
        found = codec.decode(record, "thread", keep_unreadable=True)
        assert isinstance(found.parts[0], Opaque)
        assert codec.decode(encoded(found), "thread") == found

    def test_two_rows_without_usable_ids_stay_two(self) -> None:
        kept = [
            codec.decode(row("{", message_id="", position=position), "c", keep_unreadable=True) for position in (3, 4)
        ]
        assert [message.id for message in kept] == ["unreadable-3", "unreadable-4"]

    @given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: base64.b64encode(raw).decode()))
    def test_any_body_is_a_message_or_a_stored_data_error(self, text: str) -> None:
        try:
            codec.decode(row(text), "c")
        except StoredDataError:
            assert isinstance(codec.decode(row(text), "c", keep_unreadable=True).parts[0], Opaque)

    @given(strategies.messages, st.data())
    def test_a_body_cut_anywhere_is_a_stored_data_error(self, message: Message, data: st.DataObject) -> None:
        record = encoded(message)
        if record.body is not None:
            cut = data.draw(st.integers(0, len(record.body) - 1))
            with pytest.raises(StoredDataError):
                codec.decode(msgspec.structs.replace(record, body=record.body[:cut]), "c")

    def test_unknown_fields_are_kept_as_extra(self) -> None:
        record = row(body({"type": "text", "cache": {"a": 1}}, trace="t", name="Ann"), "Hi")
        message = codec.decode(record, "c")
        assert message.extra == {"trace": "t"}
        assert message.parts == (Text("Hi", {"cache": {"a": 1}}),)
        assert json.loads(encoded(message).body or "") == json.loads(record.body or "")


class TestFromDict:
    def test_the_least_that_is_a_message(self) -> None:
        message = Message.from_dict({"role": "user"})
        assert (message.parts, message.name, message.metadata) == ((), None, {})
        assert Message.from_dict({"role": "user", "created_at": None, "name": None}).name is None

    @pytest.mark.parametrize(
        ("data", "path"),
        [
            ({}, "message.role"),
            ({"role": 1}, "message.role"),
            ({"role": "user", "format": "chatkeep/2"}, "format"),
            ({"role": "user", "format": None}, "format"),
            ({"role": "user", "parts": None}, "parts"),
            ({"role": "user", "parts": [{"type": "text"}]}, r"parts\[0\].text"),
            ({"role": "user", "parts": [{"type": "x"}]}, r"parts\[0\].type"),
            ({"role": "user", "id": None}, "message id"),
            ({"role": "user", "metadata": None}, "message.metadata"),
            ({"role": "user", "metadata": 5}, "message.metadata"),
            ({"role": "user", "name": 5}, "message.name"),
            ({"role": "user", "created_at": 5}, "created_at"),
            ({"role": "user", "created_at": "yesterday"}, "created_at"),
            ({"role": "user", "created_at": "2026-01-01T00:00:00"}, "created_at"),
            ({"role": "user", "created_at": "2026-01-01"}, "created_at"),
            ({"role": "user", "created_at": "2026-01-01T00:00:00.1234567Z"}, "created_at"),
            ({"role": "user", "a": float("inf")}, r"message\.a"),
        ],
    )
    def test_what_is_wrong_is_named_by_its_path(self, data: dict[str, Any], path: str) -> None:
        with pytest.raises(InvalidMessageError, match=path):
            Message.from_dict(data)

    @pytest.mark.parametrize("data", [None, [], "x", {"role": "user", "a": (1,)}, {"role": "user", 1: 2}])
    def test_what_json_does_not_have_is_a_type_error(self, data: Any) -> None:
        with pytest.raises(UnstorableValueError, match="message"):
            Message.from_dict(data)

    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("2026-06-01T12:00:00Z", NOON),
            ("2026-06-01T14:00:00+02:00", NOON),
            ("2026-06-01 12:00:00.5+00:00", NOON.replace(microsecond=500_000)),
            ("2026-06-01T12:00:00.123456000Z", NOON.replace(microsecond=123_456)),
        ],
    )
    def test_times_are_iso_8601(self, text: str, moment: dt.datetime) -> None:
        assert Message.from_dict({"role": "user", "created_at": text}).created_at == moment

    def test_times_are_written_with_one_width(self) -> None:
        assert Message.user("x", created_at=NOON).to_dict()["created_at"] == "2026-06-01T12:00:00.000000Z"


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
