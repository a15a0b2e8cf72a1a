"""What a backend can do: declared, tested by the conformance suite, and nothing claimed by default."""

from __future__ import annotations

import msgspec

MEBIBYTE = 1024 * 1024
MAX_MESSAGE_BYTES = 16 * MEBIBYTE
"""The limit of the shipped backends: 8 MiB of text with room for its encoding."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Each field is a sentence about the backend. The default of every field is the least able.

    What is not declared is refused with `UnsupportedOperationError`, never approximated.
    """

    max_message_bytes: int = 65_536
    """The largest encoded message (UTF-8 bytes of its text and its body) that the backend takes."""
    durable: bool = False
    """An acknowledged write survives the end of the process and, with default settings, a loss of power."""
    shared_between_processes: bool = False
    """Several processes may use one store at the same time and see each other's writes at once."""
    atomic_replace: bool = False
    """`save_all` shows every reader, in any process, the old list or the new list and never a mix."""
    concurrent_appends: bool = False
    """Parallel appends to one conversation from any process all survive, each call's messages contiguous."""
    conditional_writes: bool = False
    """`expected_version` is checked and the write applied as one step; else it is refused."""
    stable_positions: bool = False
    """Positions and versions are stored with the messages and never used again, also not by another process."""
    conversation_metadata: bool = False
    """`update_conversation` stores a title and metadata; else it is refused."""
    ttl: bool = False
    """Messages can expire: `ttl` is honoured at once by every read; else it is refused."""
    purge: bool = False
    """`purge_expired` and `purge_idle` delete physically; else they are refused."""
    native_expiry: bool = False
    """The engine removes expired messages by itself, without a purge."""
    context: bool = False
    """The start of a conversation's context is stored: a memory with `eviction="keep"` can `clear` and `set` without
    deleting anything; else they are refused."""
    token_counts: bool = False
    """Token counts are stored with the messages, so that each message is counted once; else they are counted anew."""
    vectors: bool = False
    """A `VectorMemory` can keep vectors in the backend's own tables; else it is refused without a store."""
    bounded_cost: bool = False
    """An append and a window read cost the same in message 10 and in message 1,000,000."""
    native_async: bool = False
    """The async repository speaks to the engine through an asynchronous driver, not through worker threads."""
