"""What reading and writing share: the names of notes, roles, and kinds of items. No messages here."""

from __future__ import annotations

from chatkeep.formats.shared.losses import Notes
from chatkeep.message import Media, Opaque, Part, Text, Thinking

ITEM = "openai-responses.item"
"""The key in `extra` of the part with which an item of several parts begins: the item's other fields."""

NOTES = Notes("openai-responses", "OpenAI's Responses format", (ITEM,))

OPAQUE_CONTENT = "openai-responses.content"
OPAQUE_ITEM = "openai-responses.item"
"""`Opaque.type` of whole items that have no part of their own here, such as calls that the server ran."""

ROLES = ("user", "assistant", "system", "developer")
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
RESULTS = ("function_call_output", "custom_tool_call_output")
SUMMARY, CONTENT = "summary_text", "reasoning_text"

# Values of "content" in the notes of a message item: how it was written, where that isn't the default.
FORM_LIST = "list"

NO_TEXT = "none"
"""The value of "summary" in the notes of a reasoning item without any text."""


def answers(kind: object) -> bool:
    """Whether an item of this type comes from the application and not from the model."""
    return isinstance(kind, str) and (kind.endswith("_output") or kind == "mcp_approval_response")


def text_type(role: str) -> str:
    """The type of a text unless notes say otherwise."""
    return "output_text" if role == "assistant" else "input_text"


def media_type(media: Media) -> str:
    """The type of content part that a Media becomes unless its notes say otherwise."""
    return "input_image" if media.mime_type.startswith("image/") else "input_file"


def kind_of(part: Part) -> str:
    """The kind of item that a part of what the model says belongs to; "item" where it is one by itself."""
    if isinstance(part, Thinking):
        return "reasoning"
    if isinstance(part, Text | Media) or (isinstance(part, Opaque) and part.type == OPAQUE_CONTENT):
        return "message"
    return "item"
