"""What reading and writing share: types, roles, and times of rows. No messages here."""

from __future__ import annotations

import datetime as dt
from typing import Any

from chatkeep.formats.shared.losses import Notes

ROWS = Notes("spring-ai", "Spring AI's JDBC rows")
DOCUMENTS = Notes("spring-ai-redis", "Spring AI's Redis documents")

ROLES = {"SYSTEM": "system", "USER": "user", "ASSISTANT": "assistant", "TOOL": "tool"}
TYPES = {role: kind for kind, role in ROLES.items()} | {"developer": "SYSTEM"}

CALL_TYPE = "function"
"""The type of a tool call unless notes say otherwise."""

ABSENT = False
"""In a note, for a field of text or numbers: it was missing."""

OPAQUE_MEDIA = "spring-ai-redis.media"
"""`Opaque.type` of media that are neither base64 nor a link."""
BASE64 = "base64"

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def parse_timestamp(value: Any) -> dt.datetime | None:
    """The time of a row's `timestamp`: ISO text, or milliseconds as SQLite stores it. None where it is no time.

    The columns have no zone: they hold the clock of the Java machine's zone, which is taken for UTC.
    """
    try:
        if type(value) is int:
            return _EPOCH + dt.timedelta(milliseconds=value)
        if type(value) is str:
            moment = dt.datetime.fromisoformat(value)
            return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        pass
    return None


def milliseconds(moment: dt.datetime) -> int:
    """The time as a number, as documents have it."""
    return (moment - _EPOCH) // dt.timedelta(milliseconds=1)


def format_timestamp(moment: dt.datetime) -> str:
    """The text of a `timestamp` column: 2026-01-31 12:00:00.123456, without a zone."""
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}"
