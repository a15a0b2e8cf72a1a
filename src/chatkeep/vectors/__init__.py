"""Vector memory: messages found by meaning. A store of vectors holds numbers and places, never a message's text."""

from chatkeep.storage.vectors import VectorItem
from chatkeep.vectors.embedding import AsyncEmbed, Embed
from chatkeep.vectors.inprocess import InProcessVectorStore
from chatkeep.vectors.memory import AsyncVectorMemory, Recalled, VectorMemory
from chatkeep.vectors.store import AsyncVectorStore, VectorHit, VectorStore

__all__ = [
    "AsyncEmbed",
    "AsyncVectorMemory",
    "AsyncVectorStore",
    "Embed",
    "InProcessVectorStore",
    "Recalled",
    "VectorHit",
    "VectorItem",
    "VectorMemory",
    "VectorStore",
]
