"""Makes stored text safe and readable for a terminal. Pure functions; prints nothing."""

from __future__ import annotations

import datetime as dt
import re

# Control characters and surrogates; and the overrides and isolates that let a text reverse what stands around it.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SPACES = re.compile(r"[\n\t\u2028\u2029]+")


def safe(text: str) -> str:
    """The text without anything a terminal would obey: control characters but line ends and tabs are shown as ␛.

    A chat may hold escape sequences that recolour, retitle or rewrite the screen, and they must not run.
    """
    return _UNSAFE.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def one_line(text: str) -> str:
    """`safe`, with line ends and tabs as single spaces."""
    return _SPACES.sub(" ", safe(text)).strip()


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("KB", "MB", "GB"):
        value /= 1000
        if value < 999.5:
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
    return f"{value / 1000:.1f} TB"


def local(moment: dt.datetime) -> str:
    """A time in the zone of this machine, to the minute."""
    try:
        return f"{moment.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{moment.isoformat()[:16].replace('T', ' ')} UTC"


def followed(text: object, more: str) -> str:
    """A text with one more clause behind it, whatever it ends with."""
    start = str(text)
    if start.endswith((".", "?", "!")):
        return f"{start} {more[:1].upper()}{more[1:]}"
    return f"{start}; {more}"


def count(number: int, what: str) -> str:
    """`1 message`, `1,234 messages`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
