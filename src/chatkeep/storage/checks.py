"""Checks of call arguments that are no messages: limits, ttl, versions, cursors. Everything before the first I/O."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from typing import Any

import msgspec

from chatkeep.identifiers import check_conversation_id
from chatkeep.storage.backend import DirectoryKey
from chatkeep.storage.record import NEVER, Never, Ttl

_POSITION = re.compile("p[0-9]{1,19}")
LONGEST_TTL = dt.timedelta(days=36_525)
"""A hundred years: beyond it the expiry of a message could pass the last year that engines know."""


MOST = 2**31 - 2
"""The most that engines are asked for at once; with one more it still fits their 32-bit limits."""


def check_limit(limit: object, name: str = "limit") -> int:
    """A whole number, 0 or more; beyond what a list can hold it makes no difference."""
    return min(_check_number(limit, name), MOST)


def check_version(version: object) -> int | None:
    """None, 0 (must not exist) or a version that an earlier call returned."""
    if version is None:
        return None
    number = _check_number(version, "expected_version")
    if number >= 2**63:
        raise ValueError("expected_version: not a version that a repository gave")
    return number


def check_ttl(ttl: object, name: str = "ttl") -> dt.timedelta | None:
    """A positive timedelta of up to a hundred years, or None."""
    if ttl is None:
        return None
    if not isinstance(ttl, dt.timedelta):
        raise TypeError(f"{name}: expected timedelta, got {type(ttl).__name__}")
    if not dt.timedelta(0) < ttl <= LONGEST_TTL:
        raise ValueError(f"{name}: expected more than 0 and at most 100 years, got {ttl}")
    return ttl


def effective_ttl(ttl: dt.timedelta | Never | None, default: dt.timedelta | None) -> Ttl:
    """The life of one call's messages: its own ttl, NEVER, or the repository's."""
    if ttl is None:
        return Ttl(default)
    return Ttl(None, explicit=True) if ttl is NEVER else Ttl(check_ttl(ttl), explicit=True)


def check_older_than(older_than: object) -> dt.timedelta:
    """A timedelta of 0 or more."""
    if not isinstance(older_than, dt.timedelta):
        raise TypeError(f"older_than: expected timedelta, got {type(older_than).__name__}")
    if older_than < dt.timedelta(0):
        raise ValueError(f"older_than: expected 0 or more, got {older_than}")
    return min(older_than, LONGEST_TTL)


def check_position(value: object, name: str) -> int | None:
    """None, a position of a HistoryEntry, or the next_cursor of a page of history."""
    if value is None or (type(value) is int and 0 <= value < 2**63):
        return value
    if (
        type(value) is str
        and value.startswith("p")
        and len(value) <= 20
        and value.isascii()
        and value[1:].isdecimal()
        and int(value[1:]) < 2**63
    ):
        return int(value[1:])
    if type(value) not in (int, str):
        raise TypeError(f"{name}: expected a position (int) or the next_cursor of a page, got {type(value).__name__}")
    raise ValueError(f"{name}: {value!r} is neither a position nor the next_cursor of a page of history")


def position_cursor(position: int) -> str:
    """What `check_position` takes."""
    return f"p{position}"


def directory_cursor(order: str, key: DirectoryKey) -> str:
    """An opaque text for `list_conversations(cursor=…)`."""
    return base64.urlsafe_b64encode(msgspec.json.encode([order, key])).decode().rstrip("=")


def check_directory_cursor(cursor: object, order: str) -> DirectoryKey | None:
    """The key in a cursor; ValueError where it is foreign or belongs to the other order."""
    if cursor is None:
        return None
    if type(cursor) is not str:
        raise TypeError(f"cursor: expected str, got {type(cursor).__name__}")
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        made_for, key = msgspec.json.decode(raw, type=tuple[str, DirectoryKey])
        check_conversation_id(key.conversation_id)
        if (key.updated_at is None or key.updated_at.utcoffset() is None) == (made_for == "updated"):
            raise ValueError("the time is missing or naive")
        if key.updated_at is not None:
            key = msgspec.structs.replace(key, updated_at=key.updated_at.astimezone(dt.UTC))
    except (binascii.Error, ValueError, OverflowError, msgspec.DecodeError) as exc:
        raise ValueError("cursor: not the next_cursor of a page of conversations") from exc
    if made_for != order:
        raise ValueError(f"cursor: made for order={made_for!r}, not for order={order!r}")
    return key


def check_order(order: object) -> Any:
    """`"id"` or `"updated"`."""
    if order not in ("id", "updated"):
        raise ValueError(f'order: expected "id" or "updated", got {order!r}')
    return order


def _check_number(value: object, name: str) -> int:
    if type(value) is not int:
        raise TypeError(f"{name}: expected int, got {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name}: expected 0 or more, got {value}")
    return value
