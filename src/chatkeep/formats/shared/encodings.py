"""Bytes and links inside JSON: base64, data URLs, the types of linked files. Each decodes only what it would encode."""

from __future__ import annotations

import base64
import binascii
import re

_DATA_URL = re.compile(r"data:([^,]*);base64,([A-Za-z0-9+/]*={0,2})", re.ASCII)
_EXTENSION = re.compile(r"https?://[^/?#]+/[^?#]*\.([A-Za-z0-9]+)(?:[?#]|\Z)", re.DOTALL)
_IMAGE_TYPES = {"png": "png", "jpg": "jpeg", "jpeg": "jpeg", "gif": "gif", "webp": "webp"}


def to_base64(data: bytes) -> str:
    """The base64 text of bytes, without line ends."""
    return base64.b64encode(data).decode()


def from_base64(text: str) -> bytes | None:
    """The bytes of base64 text; None unless encoding them gives the same text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if to_base64(data) == text else None


def data_url(mime_type: str, data: bytes) -> str:
    """The one spelling of a data URL that `from_data_url` reads."""
    return f"data:{mime_type};base64,{to_base64(data)}"


def from_data_url(url: str) -> tuple[str, bytes] | None:
    """Type and bytes of a data URL; None unless `data_url` would spell it the same way."""
    match = _DATA_URL.fullmatch(url)
    data = None if match is None else from_base64(match[2])
    return None if match is None or data is None else (match[1], data)


def linked_image_type(url: str) -> str:
    """The type that a link's extension tells, else "image/*": most formats don't tell the type of a linked image."""
    return f"image/{_IMAGE_TYPES.get(extension(url), '*')}"


def extension(url: str) -> str:
    """The extension of a link's path in lower case, `""` where it has none."""
    match = _EXTENSION.match(url)
    return match[1].lower() if match else ""
