"""Which Python values may be stored, and where a refusal points."""

import datetime as dt
import decimal
import enum
import math
import sys
import uuid
from typing import Any

import pytest

from chatkeep import InvalidMessageError, UnstorableValueError, values


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


class Text(str):
    pass


class Number(int):
    pass


class Mapping(dict[str, Any]):
    pass


class Items(list[Any]):
    pass


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, 1, -1, 2**53 + 1, -(2**63), 2**64, 10**4299, 1.0, -0.0, 5e-324, 1e308, "", "x", "\0\ud800"],
    ids=lambda value: ascii(value)[:20],
)
def test_a_json_value_is_taken_as_it_is(value: Any) -> None:
    copy = values.copied_json(value, "v")
    assert copy == value
    assert type(copy) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        {1, 2},
        frozenset(),
        b"bytes",
        bytearray(b"x"),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.date(2026, 1, 1),
        dt.timedelta(1),
        decimal.Decimal("1.0"),
        uuid.UUID(int=1),
        Colour.RED,
        Level.LOW,
        Word.YES,
        Text("x"),
        Number(1),
        Mapping(),
        Items(),
        1j,
        object(),
        int,
        Ellipsis,
        (item for item in ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_equal_is_a_type_error_with_its_path(value: Any) -> None:
    with pytest.raises(UnstorableValueError, match=rf"^v\.a\[2\]\.b: {type(value).__name__} ") as caught:
        values.copied_json({"a": [0, 1, {"b": value}]}, "v")
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("key", [1, None, True, 1.5, b"k", ("a",), Word.YES, Text("k")])
def test_a_key_that_is_no_str_is_a_type_error_with_its_path(key: Any) -> None:
    with pytest.raises(UnstorableValueError, match=r"^v\.a: key .* JSON keys are str"):
        values.copied_json({"a": {key: 1}}, "v")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_refused(value: float) -> None:
    with pytest.raises(InvalidMessageError, match=r"^v\[0\]: ") as caught:
        values.copied_json([value], "v")
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [10**4300, -(10**4300), 10**5000], ids=["positive", "negative", "longer"])
def test_integers_that_python_would_not_read_again_are_refused(value: int) -> None:
    with pytest.raises(InvalidMessageError, match="4300 digits"):
        values.copied_json({"n": value}, "v")


@pytest.mark.parametrize("text", ["\ud83d\ude00", "x\udbff\udc00y", "é\ud800\udc00"])
def test_surrogates_that_json_would_join_are_refused_in_values_and_keys(text: str) -> None:
    for value, path in ((text, "v"), ([text], r"v\[0\]"), ({text: 1}, "v"), ({"k": {"n": text}}, r"v\.k\.n")):
        with pytest.raises(InvalidMessageError, match=f"^{path}: a high surrogate"):
            values.copied_json(value, "v")


def test_lone_surrogates_are_taken() -> None:
    for text in ("\ud83d", "\ude00", "\ude00\ud83d", "\ud83dx\ude00", "\ud83d\ud83d", "😀\ud83d😀"):
        assert values.copied_json({text: [text]}, "v") == {text: [text]}


def nested(levels: int, kind: type) -> Any:
    value: Any = {} if kind is dict else []
    for _ in range(levels - 1):
        value = {"k": value} if kind is dict else [value]
    return value


@pytest.mark.parametrize("kind", [dict, list])
def test_two_hundred_levels_are_taken_and_one_more_is_refused(kind: type) -> None:
    deepest = nested(values.MAX_DEPTH, kind)
    assert values.copied_json(deepest, "v") == deepest
    with pytest.raises(InvalidMessageError, match="more than 200 levels") as caught:
        values.copied_json(nested(values.MAX_DEPTH + 1, kind), "v")
    assert len(str(caught.value)) < 200, "the path of two hundred levels is no help"


def test_a_container_that_holds_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    with pytest.raises(InvalidMessageError, match="levels"):
        values.copied_object(circle, "v")


def test_too_little_stack_is_an_invalid_message_and_no_recursion_error() -> None:
    deepest = nested(values.MAX_DEPTH, dict)

    def sink(depth: int) -> None:
        if depth:
            sink(depth - 1)
        else:
            values.copied_json(deepest, "v")

    with pytest.raises(InvalidMessageError, match="stack"):
        for depth in range(100, sys.getrecursionlimit(), 100):
            sink(depth)


def test_the_copy_shares_no_container() -> None:
    inner: list[Any] = [1]
    original = {"a": inner, "b": {"c": inner}, "empty": {}}
    copy = values.copied_object(original, "v")
    inner.append(2)
    original["empty"]["x"] = 1
    assert copy == {"a": [1], "b": {"c": [1]}, "empty": {}}
    empty: dict[str, Any] = {}
    assert values.copied_object(empty, "v") is not empty


@pytest.mark.parametrize("value", [None, [], "x", 1, Mapping(), [("a", 1)]])
def test_an_object_must_be_a_plain_dict(value: Any) -> None:
    with pytest.raises(UnstorableValueError, match=r"^v: expected dict"):
        values.copied_object(value, "v")


def test_a_str_must_be_a_plain_str() -> None:
    values.require_str("x", "v")
    values.require_str(None, "v", optional=True)
    for value in (None, 1, b"x", Word.YES, Text("x")):
        with pytest.raises(UnstorableValueError, match=r"^v: expected str, got"):
            values.require_str(value, "v")
    with pytest.raises(UnstorableValueError, match=r"^v: expected str or None"):
        values.require_str(1, "v", optional=True)
