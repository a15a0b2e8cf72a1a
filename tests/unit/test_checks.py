"""Limits, lives, versions, positions and cursors: checked before the first I/O."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatkeep import NEVER
from chatkeep.conformance import strategies
from chatkeep.storage import checks
from chatkeep.storage.backend import DirectoryKey
from chatkeep.storage.record import Ttl

DAY = dt.timedelta(days=1)


def test_limits() -> None:
    for limit in (0, 1, 10**6):
        assert checks.check_limit(limit) == limit
    # More than a list can hold makes no difference, and an engine's 32-bit LIMIT must not overflow.
    assert checks.check_limit(10**18) < 2**31 - 1


def test_versions() -> None:
    for version in (None, 0, 1, 2**53 + 1, 2**63 - 1):
        assert checks.check_version(version) == version
    for wrong, error in ((-1, ValueError), (2**63, ValueError), ("1", TypeError), (True, TypeError), (1.0, TypeError)):
        with pytest.raises(error, match="expected_version"):
            checks.check_version(wrong)


@pytest.mark.parametrize("limit", [True, None, "1", 1.0])
def test_a_limit_is_a_whole_number(limit: Any) -> None:
    with pytest.raises(TypeError, match="count: expected int"):
        checks.check_limit(limit, "count")


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(ValueError, match="limit: expected 0 or more, got -1"):
        checks.check_limit(-1)


@pytest.mark.parametrize("ttl", [dt.timedelta(microseconds=1), DAY, checks.LONGEST_TTL])
def test_lives(ttl: dt.timedelta) -> None:
    assert checks.check_ttl(ttl) == ttl


@pytest.mark.parametrize("ttl", [dt.timedelta(0), -DAY, checks.LONGEST_TTL + dt.timedelta(microseconds=1)])
def test_a_life_is_positive_and_at_most_a_hundred_years(ttl: dt.timedelta) -> None:
    with pytest.raises(ValueError, match="ttl"):
        checks.check_ttl(ttl)


@pytest.mark.parametrize("ttl", [60, "1d", 1.5, NEVER])
def test_a_life_is_a_timedelta(ttl: Any) -> None:
    with pytest.raises(TypeError, match="expected timedelta"):
        checks.check_ttl(ttl)


def test_the_life_of_a_call_goes_before_the_repositorys() -> None:
    assert checks.effective_ttl(None, None) == Ttl(None)
    assert checks.effective_ttl(None, DAY) == Ttl(DAY)
    assert checks.effective_ttl(2 * DAY, DAY) == Ttl(2 * DAY, explicit=True)
    assert checks.effective_ttl(NEVER, DAY) == Ttl(None, explicit=True)


def test_idle_times() -> None:
    assert checks.check_older_than(dt.timedelta(0)) == dt.timedelta(0)
    assert checks.check_older_than(dt.timedelta.max) == checks.LONGEST_TTL
    with pytest.raises(ValueError, match="older_than"):
        checks.check_older_than(-DAY)
    with pytest.raises(TypeError, match="older_than"):
        checks.check_older_than(30)


@given(st.integers(0, 2**63 - 1))
def test_positions_and_their_cursors(position: int) -> None:
    assert checks.check_position(position, "after") == position
    assert checks.check_position(checks.position_cursor(position), "after") == position


@pytest.mark.parametrize("value", ["", "p", "5", "p-1", "px", "p" + "9" * 30, -1, 2**63, "eyJ"])
def test_a_foreign_position_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError, match="after"):
        checks.check_position(value, "after")


@pytest.mark.parametrize("value", [True, 1.0, b"p1", [1]])
def test_a_position_is_a_number_or_a_cursor(value: Any) -> None:
    with pytest.raises(TypeError, match="after"):
        checks.check_position(value, "after")


def test_endless_digits_are_no_position() -> None:
    with pytest.raises(ValueError, match="after"):
        checks.check_position("p" + "9" * 5000, "after")


@given(strategies.ids, strategies.moments)
def test_directory_cursors_lead_back_to_their_place(conversation_id: str, moment: dt.datetime) -> None:
    moment = moment.astimezone(dt.UTC)
    for order, key in (("id", DirectoryKey(conversation_id)), ("updated", DirectoryKey(conversation_id, moment))):
        cursor = checks.directory_cursor(order, key)
        assert cursor.isascii()
        assert checks.check_directory_cursor(cursor, order) == key
        other = "id" if order == "updated" else "updated"
        with pytest.raises(ValueError, match="made for order"):
            checks.check_directory_cursor(cursor, other)


@given(st.text(max_size=40))
def test_a_foreign_directory_cursor_is_a_value_error(cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        checks.check_directory_cursor(cursor, "id")


@pytest.mark.parametrize("cursor", [5, b"x", []])
def test_a_directory_cursor_is_a_str(cursor: Any) -> None:
    with pytest.raises(TypeError, match="cursor"):
        checks.check_directory_cursor(cursor, "id")


def test_orders() -> None:
    assert checks.check_order("updated") == "updated"
    for order in ("created", "", None, 1, "ID"):
        with pytest.raises(ValueError, match='"id" or "updated"'):
            checks.check_order(order)
