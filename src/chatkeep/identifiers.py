"""The rules for conversation, owner and message ids, checked once, in Python, alike for every engine."""

from __future__ import annotations

import os
import time

from chatkeep.errors import (
    ChatkeepError,
    InvalidConversationIdError,
    InvalidMessageError,
    InvalidOwnerError,
)
from chatkeep.forking import Lock
from chatkeep.values import UNSAFE_IN_NAMES

MAX_ID_LENGTH = 255
MAX_TITLE_LENGTH = 255


def check_conversation_id(value: object) -> str:
    """1 to 255 characters, no control or surrogate characters, no white space at the ends; compared exactly."""
    return _check(value, "conversation id", InvalidConversationIdError, shortest=1)


def check_owner(value: object) -> str:
    """As a conversation id, but `""` says that nobody is named."""
    return _check(value, "owner", InvalidOwnerError, shortest=0)


def check_message_id(value: object) -> str:
    """As a conversation id."""
    return _check(value, "message id", InvalidMessageError, shortest=1)


def check_title(value: object) -> str | None:
    """None, or up to 255 characters without NUL and surrogates."""
    if value is None:
        return None
    if type(value) is not str:
        raise TypeError(f"title: expected str or None, got {type(value).__name__}")
    if len(value) > MAX_TITLE_LENGTH:
        raise ValueError(f"title: at most {MAX_TITLE_LENGTH} characters, got {len(value)}")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("title: NUL and lone surrogates can't be stored")
    return value


def _check(value: object, what: str, error: type[ChatkeepError], *, shortest: int) -> str:
    # A subclass of str (an enum, a lazy translation) may compare in its own way; ids are plain text.
    if type(value) is not str:
        raise error(f"{what}: expected str, got {type(value).__name__}")
    if not shortest <= len(value) <= MAX_ID_LENGTH:
        raise error(f"{what}: {shortest} to {MAX_ID_LENGTH} characters, got {len(value)}")
    if UNSAFE_IN_NAMES.search(value):
        raise error(f"{what} {value!r}: control characters and surrogates are not allowed")
    if value != value.strip():
        raise error(f"{what} {value!r}: white space at the ends is not allowed")
    return value


_lock = Lock()
_last = 0


def new_message_id() -> str:
    """A UUIDv7 (RFC 9562, section 5.7): 48 bits of milliseconds, a 12-bit fraction that grows, 62 random bits.

    The fraction is method 3 of section 6.2, so that ids of one process sort as they were made, also when several
    share a millisecond or the clock runs backwards. Order in a conversation never depends on it.
    """
    global _last
    with _lock.now:
        # 1/4096 of a millisecond; one more than the last where the clock stands still.
        _last = max(_last + 1, time.time_ns() * 4096 // 1_000_000)
        ticks = _last
    milliseconds, fraction = divmod(ticks, 4096)
    random = int.from_bytes(os.urandom(8), "big") >> 2 | 0b10 << 62
    # The text of uuid.UUID(int=…), at a third of its cost.
    high, low = f"{milliseconds & 0xFFFFFFFFFFFF:012x}", f"{random:016x}"
    return f"{high[:8]}-{high[8:]}-7{fraction:03x}-{low[:4]}-{low[4:]}"
