"""Rules for ids, and the message ids that chatkeep makes."""

import enum
import itertools
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatkeep import InvalidConversationIdError, InvalidMessageError, InvalidOwnerError, identifiers
from chatkeep.identifiers import (
    check_conversation_id,
    check_message_id,
    check_owner,
    check_title,
    new_message_id,
)

CHECKS: list[tuple[Callable[[object], str], type[Exception]]] = [
    (check_conversation_id, InvalidConversationIdError),
    (check_owner, InvalidOwnerError),
    (check_message_id, InvalidMessageError),
]


class Word(enum.StrEnum):
    YES = "yes"


@pytest.mark.parametrize(("check", "error"), CHECKS)
@pytest.mark.parametrize(
    "value",
    [
        "a",
        "A",
        "é",
        "e\u0301",
        "😀" * 255,
        "x" * 255,
        "a b",
        "'; DROP TABLE x; --",
        "../..",
        "%s",
        "{0}",
        "\u200b",
        "\uff41",
    ],
)
def test_any_text_is_an_id_and_is_kept_to_the_letter(
    check: Callable[[object], str], error: type[Exception], value: str
) -> None:
    assert check(value) is value


@pytest.mark.parametrize(("check", "error"), CHECKS)
@pytest.mark.parametrize(
    "value",
    [
        "x" * 256,
        "\0",
        "a\nb",
        "a\tb",
        "a\x1fb",
        "a\x7f",
        "a\x85b",
        "\ud800",
        "a\udfffb",
        " a",
        "a ",
        "\u00a0a",
        "a\u3000",
        "\u2028",
        None,
        1,
        b"a",
        Word.YES,
        uuid.UUID(int=1),
    ],
)
def test_what_is_no_id_is_refused(check: Callable[[object], str], error: type[Exception], value: Any) -> None:
    with pytest.raises(error):
        check(value)


def test_only_an_owner_may_be_empty() -> None:
    assert check_owner("") == ""
    for check, error in (CHECKS[0], CHECKS[2]):
        with pytest.raises(error, match="1 to 255 characters, got 0"):
            check("")


def test_the_errors_are_value_errors() -> None:
    for _, error in CHECKS:
        assert issubclass(error, ValueError)


@pytest.mark.parametrize("title", [None, "", "x" * 255, " spaced ", "two\nlines", "😀"])
def test_titles(title: str | None) -> None:
    assert check_title(title) == title


@pytest.mark.parametrize(
    ("title", "error"), [("x" * 256, ValueError), ("a\0", ValueError), ("\ud800", ValueError), (1, TypeError)]
)
def test_titles_that_are_refused(title: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="title"):
        check_title(title)


def test_new_ids_are_uuids_of_version_7_with_the_present_time() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(new_message_id())
    after = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before - 1 <= made.int >> 80 <= after + 1


@given(st.lists(st.integers(0, 2**62), min_size=2, max_size=50))
def test_new_ids_sort_as_they_were_made_whatever_the_clock_says(clock: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identifiers, "_last", 0)
        ticks = itertools.chain(clock, itertools.repeat(clock[-1]))
        patch.setattr(time, "time_ns", lambda: next(ticks))
        made = [new_message_id() for _ in range(len(clock) + 5)]
    assert made == sorted(set(made))
    assert {uuid.UUID(one).version for one in made} == {7}


def test_new_ids_of_many_threads_differ() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend([new_message_id() for _ in range(500)])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4000
