"""What reading and writing share: the names of notes, data URLs and media types. No messages here."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from chatkeep.message import Media

NOTES = "openai"
"""The key in `extra` under which the rest of an OpenAI object is kept: its unknown fields, and how it was written."""

# `Opaque.type` of whole objects that have no part of their own here.
OPAQUE_CONTENT = "openai.content"
OPAQUE_TOOL_CALL = "openai.tool_call"

# Values of "type" in notes for what was a field of the message and not an element of a list.
REFUSAL_FIELD = "message.refusal"
FUNCTION_CALL_FIELD = "message.function_call"
MISSING = "missing"

# Values of "content" in notes: how the content was written, where that isn't the default.
FORM_LIST = "list"
FORM_NULL = "null"

RESULT_ROLES = ("tool", "function")

_DATA_URL = re.compile(r"data:([^,]*);base64,([A-Za-z0-9+/]*={0,2})", re.ASCII)
_IMAGE_TYPES = {"png": "png", "jpg": "jpeg", "jpeg": "jpeg", "gif": "gif", "webp": "webp"}
_EXTENSION = re.compile(r"https?://[^/?#]+/[^?#]*\.([A-Za-z]+)(?:[?#]|\Z)", re.DOTALL)
_AUDIO_FORMATS = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
}
_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}


def notes(rest: dict[str, Any]) -> dict[str, Any]:
    """The `extra` for the rest of an OpenAI object."""
    return {NOTES: rest} if rest else {}


def data_url(mime_type: str, data: bytes) -> str:
    """The one spelling of a data URL that `from_data_url` reads."""
    return f"data:{mime_type};base64,{base64.b64encode(data).decode()}"


def from_data_url(url: str) -> tuple[str, bytes] | None:
    """Type and bytes of a data URL; None unless `data_url` would spell it the same way."""
    match = _DATA_URL.fullmatch(url)
    data = None if match is None else from_base64(match[2])
    return None if match is None or data is None else (match[1], data)


def from_base64(text: str) -> bytes | None:
    """The bytes of base64 text; None unless encoding them gives the same text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None


def linked_image_type(url: str) -> str:
    """OpenAI doesn't tell the type of a linked image: its extension does, else it is "image/*"."""
    match = _EXTENSION.match(url)
    return f"image/{_IMAGE_TYPES.get(match[1].lower(), '*') if match else '*'}"


def audio_type(audio_format: str) -> str | None:
    """The media type of a format of `input_audio`; None for formats that OpenAI doesn't list."""
    return _AUDIO_TYPES.get(audio_format)


def audio_format(mime_type: str) -> str | None:
    """The format of `input_audio` for a media type, None where it has none."""
    return _AUDIO_FORMATS.get(mime_type)


def media_part_type(media: Media) -> str | None:
    """The type of content part that a Media becomes unless its notes say otherwise; None where there is none."""
    if media.mime_type.startswith("image/"):
        return "image_url"
    if media.data is None:
        return None
    return "file" if audio_format(media.mime_type) is None else "input_audio"
