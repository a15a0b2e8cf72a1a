"""What reading and writing share: the names of notes, roles, and kinds of contents. No messages here."""

from __future__ import annotations

from chatkeep.formats.shared.losses import Notes

NOTES = Notes("langchain4j", "LangChain4j's format")

OPAQUE_CONTENT = "langchain4j.content"
"""`Opaque.type` of contents that have no part of their own here."""

CUSTOM = "custom"
"""The role of a CustomMessage, which is nothing but attributes."""

ROLES = {"SYSTEM": "system", "USER": "user", "AI": "assistant", "TOOL_EXECUTION_RESULT": "tool", "CUSTOM": CUSTOM}
TYPES = {role: kind for kind, role in ROLES.items()} | {"developer": "SYSTEM"}

MEDIA_FIELDS = {"IMAGE": "image", "AUDIO": "audio", "VIDEO": "video", "PDF": "pdfFile"}

DETAIL = "LOW"
"""LangChain4j's own default; its reader wants the field."""

# Values of "type" in the notes of a Media: how it was written, where that isn't the default.
UNTYPED = "untyped"
"""There was no mimeType."""
BINARY = "binaryData"
"""The bytes stood in `binaryData` and not in `base64Data`."""

FORM_TEXT = "text"
"""The note "contents" of a result that was written in the older form, as `text`."""


def content_type(mime_type: str) -> str | None:
    """The type of content that a Media becomes unless its notes say otherwise; None where there is none."""
    if mime_type == "application/pdf":
        return "PDF"
    kind = mime_type.partition("/")[0].upper()
    return kind if kind in ("IMAGE", "AUDIO", "VIDEO") else None


def guessed_type(kind: str, linked: str) -> str:
    """The media type of a content that tells none; `linked` is that of an image by its link."""
    return {"IMAGE": linked, "PDF": "application/pdf"}.get(kind, f"{kind.lower()}/*")
