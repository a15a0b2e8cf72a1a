"""Messages and parts: immutable values, and the rules that a storable message obeys."""

import copy
import datetime as dt
import enum
import math
import pickle
import zoneinfo
from typing import Any

import msgspec
import pytest

from chatkeep import (
    InvalidMessageError,
    Media,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnstorableValueError,
)
from chatkeep.message import MAX_RESULT_DEPTH

NOON = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)


class Word(enum.StrEnum):
    YES = "yes"


def test_constructors_for_people() -> None:
    call = ToolCall("call_1", "weather", '{"city": "Rome"}')
    assert Message.system("Be kind.", id="s").parts == (Text("Be kind."),)
    assert Message.user("Hi").role == "user"
    assert Message.user(Text("Hi")).parts == (Text("Hi"),)
    assert Message.user([Text("Hi"), Media("image/png", b"")]).parts == (Text("Hi"), Media("image/png", b""))
    assert Message.assistant("Let me see.", tool_calls=[call]).parts == (Text("Let me see."), call)
    assert Message.assistant(tool_calls=iter([call])).parts == (call,)
    assert Message.assistant().parts == ()
    assert Message.assistant(name="bot", metadata={"a": 1}, created_at=NOON).name == "bot"
    assert Message.tool("sunny", call_id="call_1", name="weather").parts == (ToolResult("call_1", "sunny", "weather"),)
    assert Message.tool([Text("a")], call_id="c", is_error=True).parts == (
        ToolResult("c", (Text("a"),), is_error=True),
    )


def test_properties_read_the_parts() -> None:
    call, result = ToolCall("c", "f"), ToolResult("c", "answer")
    message = Message("assistant", (Text("a"), call, Thinking("hidden"), Text("b"), result))
    assert message.text == "ab"
    assert message.tool_calls == [call]
    assert message.tool_results == [result]
    assert Message.assistant(tool_calls=[call]).text == ""
    assert ToolResult("c", (Text("x"), Media("a/b", b""), Text("y"))).text == "xy"
    assert result.text == "answer"


def test_defaults() -> None:
    before = dt.datetime.now(dt.UTC)
    one, two = Message.user("Hi"), Message.user("Hi")
    assert one.id != two.id
    assert before <= one.created_at <= dt.datetime.now(dt.UTC)
    assert (one.name, one.metadata, one.extra, one.parts[0].extra) == (None, {}, {}, {})  # type: ignore[union-attr]
    assert one.metadata is not two.metadata
    assert ToolCall("c", "f").arguments == "{}"


def test_messages_are_values() -> None:
    one = Message.user("Hi", id="x", created_at=NOON, metadata={"a": [1]})
    assert one == Message.user("Hi", id="x", created_at=NOON, metadata={"a": [1]})
    assert one != Message.user("Hi", id="x", created_at=NOON, metadata={"a": [2]})
    with pytest.raises(AttributeError):
        one.role = "system"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        one.parts[0].text = "x"  # type: ignore[misc, union-attr]
    assert copy.deepcopy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert msgspec.structs.replace(one, name="Ann").name == "Ann"


@pytest.mark.parametrize("field", ["metadata", "extra"])
@pytest.mark.parametrize("given", [{}, {"a": {"b": [1]}}])
def test_a_message_holds_copies_of_what_it_was_given(field: str, given: dict[str, Any]) -> None:
    before = copy.deepcopy(given)
    mine = copy.deepcopy(given)
    message = Message("user", (), **{field: mine})
    mine["later"] = 1
    mine.get("a", {})["later"] = 1
    assert getattr(message, field) == before


def test_parts_hold_copies_too() -> None:
    extra: dict[str, Any] = {}
    data = [1]
    parts = [Text("x", extra), Opaque("y", data)]
    message = Message("user", parts)  # type: ignore[arg-type]
    extra["later"] = 1
    data.append(2)
    parts.clear()
    assert message.parts == (Text("x"), Opaque("y", [1]))
    results: list[Any] = [Text("x")]
    result = ToolResult("c", results)  # type: ignore[arg-type]
    results.clear()
    assert result.content == (Text("x"),)


@pytest.mark.parametrize("role", ["critic", "developer", "a" * 64, "Übersetzer", "two words"])
def test_roles_are_open(role: str) -> None:
    assert Message(role).role == role


@pytest.mark.parametrize("role", ["", "a" * 65, "a\n", "\0", "\ud800", " user", "user ", "a\x7fb"])
def test_roles_that_are_refused(role: str) -> None:
    with pytest.raises(InvalidMessageError, match="role"):
        Message(role)


@pytest.mark.parametrize("role", [None, 1, Word.YES, b"user"])
def test_a_role_is_a_str(role: Any) -> None:
    with pytest.raises(UnstorableValueError, match="role"):
        Message(role)


@pytest.mark.parametrize("message_id", ["", "x" * 256, " x", "a\nb", None, 1])
def test_a_message_id_obeys_the_rules_of_ids(message_id: Any) -> None:
    with pytest.raises(InvalidMessageError, match="message id"):
        Message("user", (), message_id)


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: Text(None), "text"),  # type: ignore[arg-type]
        (lambda: Text(Word.YES), "text"),
        (lambda: Text("x", None), "extra"),  # type: ignore[arg-type]
        (lambda: Text("x", {"a": (1,)}), "extra.a"),
        (lambda: Thinking(1), "text"),  # type: ignore[arg-type]
        (lambda: Thinking("x", b"s"), "signature"),  # type: ignore[arg-type]
        (lambda: Media(None, b""), "mime_type"),  # type: ignore[arg-type]
        (lambda: Media("a/b", bytearray(b"")), "data"),
        (lambda: Media("a/b", "text"), "data"),  # type: ignore[arg-type]
        (lambda: Media("a/b", url=1), "url"),  # type: ignore[arg-type]
        (lambda: Media("a/b", b"", name=1), "name"),  # type: ignore[arg-type]
        (lambda: ToolCall(1, "f"), "id"),  # type: ignore[arg-type]
        (lambda: ToolCall("c", None), "name"),  # type: ignore[arg-type]
        (lambda: ToolCall("c", "f", {"city": "Rome"}), "arguments"),  # type: ignore[arg-type]
        (lambda: ToolCall("c", "f", Word.YES), "arguments"),
        (lambda: ToolResult(None), "call_id"),  # type: ignore[arg-type]
        (lambda: ToolResult("c", None), "content"),  # type: ignore[arg-type]
        (lambda: ToolResult("c", {"a": 1}), "content"),  # type: ignore[arg-type]
        (lambda: ToolResult("c", ["text"]), r"content\[0\]"),  # type: ignore[arg-type]
        (lambda: ToolResult("c", "", 1), "name"),  # type: ignore[arg-type]
        (lambda: ToolResult("c", "", None, 1), "is_error"),  # type: ignore[arg-type]
        (lambda: Opaque(None), "type"),  # type: ignore[arg-type]
        (lambda: Opaque("x", {"a": [b""]}), r"data\.a\[0\]"),
        (lambda: Message("user", "text"), "parts"),  # type: ignore[arg-type]
        (lambda: Message("user", None), "parts"),  # type: ignore[arg-type]
        (lambda: Message("user", (Text("x"), "y")), r"parts\[1\]"),  # type: ignore[arg-type]
        (lambda: Message("user", ({"type": "text"},)), r"parts\[0\]"),  # type: ignore[arg-type]
        (lambda: Message.user("x", name=1), "name"),
        (lambda: Message.user("x", metadata=None), "metadata"),
        (lambda: Message.user("x", metadata={"when": NOON}), r"metadata\.when"),
        (lambda: Message.user("x", metadata={"a": [{"b": (1,)}]}), r"metadata\.a\[0\]\.b"),
        (lambda: Message.user("x", created_at="2026-01-01"), "created_at"),
        (lambda: Message.user("x", created_at=dt.date(2026, 1, 1)), "created_at"),
        (lambda: Message.user(1), "content"),  # type: ignore[arg-type]
        (lambda: Message.user(["x"]), r"content\[0\]"),  # type: ignore[list-item]
    ],
)
def test_values_of_the_wrong_type_are_refused_with_their_path(make: Any, path: str) -> None:
    with pytest.raises(UnstorableValueError, match=rf"^{path}: "):
        make()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_infinity_are_refused_with_their_path(value: float) -> None:
    with pytest.raises(InvalidMessageError, match=r"^metadata\.a\[0\]: "):
        Message.user("x", metadata={"a": [value]})
    with pytest.raises(InvalidMessageError, match=r"^data\.x: "):
        Opaque("t", {"x": value})


def test_two_surrogates_that_json_would_join_are_refused() -> None:
    for make in (
        lambda: Message.user("\ud83d\ude00"),
        lambda: Message.user("x", name="\ud83d\ude00"),
        lambda: ToolCall("c", "f", "\ud83d\ude00"),
        lambda: Message.user("x", metadata={"\ud83d\ude00": 1}),
    ):
        with pytest.raises(InvalidMessageError, match="surrogate"):
            make()


@pytest.mark.parametrize(("data", "url"), [(None, None), (b"", "x"), (b"x", "")])
def test_media_has_bytes_or_a_url(data: bytes | None, url: str | None) -> None:
    with pytest.raises(InvalidMessageError, match="exactly one"):
        Media("image/png", data, url)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda extra: Text("x", extra), "text"),
        (lambda extra: Text("x", extra), "type"),
        (lambda extra: Thinking("x", extra=extra), "signature"),
        (lambda extra: Media("a/b", b"", extra=extra), "data"),
        (lambda extra: ToolCall("c", "f", extra=extra), "arguments"),
        (lambda extra: ToolResult("c", extra=extra), "is_error"),
        (lambda extra: Message("user", extra=extra), "metadata"),
        (lambda extra: Message("user", extra=extra), "format"),
    ],
)
def test_extra_may_not_hide_a_field(make: Any, field: str) -> None:
    with pytest.raises(InvalidMessageError, match=f"'{field}' is a field of"):
        make({field: 1})


def test_tool_results_nest_to_a_bound() -> None:
    result = ToolResult("c", "deepest")
    for _ in range(MAX_RESULT_DEPTH - 1):
        result = ToolResult("c", (Text("and"), result))
    assert Message("tool", (result,)).text == ""
    with pytest.raises(InvalidMessageError, match="levels of tool results"):
        ToolResult("c", (result,))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (NOON, NOON),
        (dt.datetime(2026, 6, 1, 14, tzinfo=dt.timezone(dt.timedelta(hours=2))), NOON),
        (dt.datetime(2026, 6, 1, 14, tzinfo=zoneinfo.ZoneInfo("Europe/Rome")), NOON),
        (dt.datetime(2026, 6, 1, 12, 0, 0, 1, tzinfo=zoneinfo.ZoneInfo("UTC")), NOON.replace(microsecond=1)),
        # The hour that comes twice: fold chooses the second one.
        (
            dt.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Rome"), fold=1),
            dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC),
        ),
        (dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), dt.datetime.max.replace(tzinfo=dt.UTC)),
    ],
)
def test_times_become_utc(given: dt.datetime, expected: dt.datetime) -> None:
    found = Message.user("x", created_at=given).created_at
    assert found == expected
    assert (found.tzinfo, found.fold, type(found)) == (dt.UTC, 0, dt.datetime)


def test_a_subclass_of_datetime_becomes_a_plain_one() -> None:
    class Frozen(dt.datetime):
        pass

    assert type(Message.user("x", created_at=Frozen(2026, 1, 1, tzinfo=dt.UTC)).created_at) is dt.datetime

    class Nano(Frozen):
        nanosecond = 7

    with pytest.raises(UnstorableValueError, match="nanoseconds"):
        Message.user("x", created_at=Nano(2026, 1, 1, tzinfo=dt.UTC))


@pytest.mark.parametrize(
    "moment",
    [
        dt.datetime(2026, 1, 1),
        dt.datetime(999, 12, 31, 23, tzinfo=dt.UTC),
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-2))),
    ],
)
def test_naive_and_far_away_times_are_value_errors(moment: dt.datetime) -> None:
    with pytest.raises(InvalidMessageError, match="created_at"):
        Message.user("x", created_at=moment)
