"""What reading and writing share: the names of notes, and media types. No messages here."""

from __future__ import annotations

from chatkeep.formats.shared.losses import Notes
from chatkeep.message import Media

NOTES = Notes("openai", "OpenAI's format")

# `Opaque.type` of whole objects that have no part of their own here.
OPAQUE_CONTENT = "openai.content"
OPAQUE_TOOL_CALL = "openai.tool_call"

# Values of "type" in notes for what was a field of the message and not an element of a list.
REFUSAL_FIELD = "message.refusal"
FUNCTION_CALL_FIELD = "message.function_call"

# Values of "content" in notes: how the content was written, where that isn't the default.
FORM_LIST = "list"
FORM_NULL = "null"

RESULT_ROLES = ("tool", "function")

_AUDIO_FORMATS = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
}
_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}


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
