"""What stored text may do to a terminal: nothing."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatkeep.cli import text


@given(st.text())
def test_no_control_character_but_line_ends_and_tabs_survives(value: str) -> None:
    for character in text.safe(value):
        code = ord(character)
        assert character in "\n\t" or not (code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code <= 0xDFFF)


@given(st.text())
def test_one_line_is_one_line_and_can_be_encoded(value: str) -> None:
    line = text.one_line(value)
    assert len(line.splitlines()) <= 1
    line.encode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("bell\a, delete\x7f", "bell␇, delete␡"),
        ("C1 \x9b31m", "C1 \ufffd31m"),
        ("over\rwritten", "over␍written"),
        ("Windows\r\nline", "Windows\nline"),
        ("lone \ud800", "lone \ufffd"),
        ("tab\tand 你好 🎉", "tab\tand 你好 🎉"),
    ],
)
def test_control_characters_are_shown_and_not_obeyed(value: str, shown: str) -> None:
    assert text.safe(value) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (12_000, "12 KB"), (999_900, "1.0 MB"), (3_456_789, "3.5 MB")],
)
def test_sizes_are_short(number: int, shown: str) -> None:
    assert text.size(number) == shown


def test_times_at_the_ends_of_the_calendar_are_shown() -> None:
    assert text.local(dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.UTC))
    assert text.local(dt.datetime(1, 1, 1, tzinfo=dt.UTC))


@pytest.mark.parametrize(
    ("first", "whole"), [("it broke", "it broke; do x"), ("Why?", "Why? Do x"), ("Done.", "Done. Do x")]
)
def test_a_next_step_follows_whatever_the_text_ends_with(first: str, whole: str) -> None:
    assert text.followed(first, "do x") == whole
