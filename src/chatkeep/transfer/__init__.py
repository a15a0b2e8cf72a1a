"""Conversations as a stream: export, import and copy between repositories. Memory stays flat; knows no terminal.

A stream holds one owner's conversations. It is JSON Lines once encoded, of two kinds, a conversation before its
messages:

    {"type": "conversation", "id": …, "title": …, "metadata": {…}, "created_at": …, "updated_at": …}
    {"type": "message", "conversation_id": …, "expires_at": null or a time, "message": Message.to_dict()}

Or in the format of another: `import_documents`, `export_documents`.

Everything is repeatable: messages keep their ids, and an append stores no id twice.
"""

from chatkeep.transfer.foreign import export_documents, import_documents
from chatkeep.transfer.moving import Difference, compare, copy, import_lines
from chatkeep.transfer.reading import encode_line, export_lines, walk
from chatkeep.transfer.writing import Tally

__all__ = [
    "Difference",
    "Tally",
    "compare",
    "copy",
    "encode_line",
    "export_documents",
    "export_lines",
    "import_documents",
    "import_lines",
    "walk",
]
