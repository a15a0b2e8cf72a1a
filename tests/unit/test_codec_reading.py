"""Rows and dicts from elsewhere: read whole, or refused with the place of what is wrong."""

import base64
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
    Message,
    Opaque,
    StoredDataError,
    Text,
    UnstorableValueError,
)
from chatkeep.conformance import strategies
from chatkeep.storage import codec
from chatkeep.storage.record import MessageRecord

NOON = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
BIG = sys.maxsize


def encoded(message: Message) -> MessageRecord:
    return codec.encode(message, "message", BIG)


def row(body: str | None, content: str = "", **fields: Any) -> MessageRecord:
    whole = {"message_id": "m", "role": "user", "created_at": NOON, "position": 7, **fields}
    return MessageRecord(content=content, body=body, **whole)


def body(*parts: Any, **fields: Any) -> str:
    return json.dumps({"format": "chatkeep/1", "parts": parts, **fields})


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
