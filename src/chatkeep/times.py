"""Times: aware, UTC, to the microsecond, the resolution that every engine keeps. Their one text form."""

from __future__ import annotations

import datetime as dt
import re

from chatkeep.errors import InvalidMessageError, UnstorableValueError

EARLIEST = dt.datetime(1000, 1, 1, tzinfo=dt.UTC)
"""The oldest `created_at`: MySQL's DATETIME begins here, and one promise holds on every engine."""

_BELOW_MICROSECONDS = re.compile(r"[.,]\d{6}0*[1-9]")


def utc(value: object) -> dt.datetime:
    """An aware datetime as plain UTC with microseconds, the resolution that every engine keeps."""
    if not isinstance(value, dt.datetime):
        raise UnstorableValueError(f"created_at: expected an aware datetime, got {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidMessageError("created_at: naive datetime; give it a time zone, as in datetime.now(timezone.utc)")
    if type(value) is dt.datetime and value.tzinfo is dt.UTC:
        moment = value
    else:
        if getattr(value, "nanosecond", 0):
            raise UnstorableValueError("created_at: nanoseconds would be lost; round to microseconds first")
        try:
            moved = value.astimezone(dt.UTC)
        except OverflowError as exc:
            raise InvalidMessageError("created_at: outside of the years 1000 to 9999 in UTC") from exc
        # Subclasses (a frozen clock's, pandas') would not come back as what they are.
        moment = dt.datetime.combine(moved.date(), moved.time(), dt.UTC)
    if moment < EARLIEST:
        raise InvalidMessageError("created_at: outside of the years 1000 to 9999 in UTC")
    return moment.replace(fold=0) if moment.fold else moment


def format_time(moment: dt.datetime) -> str:
    """UTC with six digits, of one width, so that text order is time order: 2026-11-30T17:51:59.123456Z."""
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def parse_time(value: object, path: str) -> dt.datetime:
    """An aware datetime from ISO 8601 text."""
    if type(value) is not str:
        raise InvalidMessageError(f"{path}: expected ISO 8601 text, got {type(value).__name__}")
    if _BELOW_MICROSECONDS.search(value):
        raise InvalidMessageError(f"{path}: {value!r} has more than microseconds, which would be lost")
    try:
        return dt.datetime.fromisoformat(value)
    except ValueError as exc:
        raise InvalidMessageError(f"{path}: {value!r} is not an ISO 8601 time") from exc
