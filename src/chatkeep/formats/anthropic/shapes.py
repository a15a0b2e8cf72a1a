"""What reading and writing share: the names of notes, roles, and media types. No messages here."""

from __future__ import annotations

from chatkeep.formats.shared.losses import Notes
from chatkeep.message import Media

NOTES = Notes("anthropic", "Anthropic's format")

OPAQUE_BLOCK = "anthropic.content"
"""`Opaque.type` of blocks that have no part of their own here: what the server ran, redacted thinking, references."""

ROLES = ("user", "assistant", "system")
SYSTEM_ROLES = ("system", "developer")
WRITTEN_ROLES = {"user": "user", "tool": "user", "assistant": "assistant", "system": "system", "developer": "system"}

# Values of "content" and "role" in notes: how a message was written, where that isn't the default.
FORM_LIST = "list"
APART = "apart"
"""A message of results that is not one with the message of results before it."""
IN_MESSAGES = "system"
"""A system message at the start that stood in `messages` and not in `system`."""

PLAIN_TEXT = "text/plain"
PDF = "application/pdf"


def block_type(media: Media) -> str | None:
    """The type of block that a Media becomes unless its notes say otherwise; None where there is none."""
    if media.mime_type.startswith("image/"):
        return "image"
    if media.mime_type == PDF or (media.mime_type == PLAIN_TEXT and media.data is not None):
        return "document"
    return None
