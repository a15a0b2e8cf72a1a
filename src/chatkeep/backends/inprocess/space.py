"""What in-process repositories share: conversations in a dict, the lock over them, and what this backend can do."""

from __future__ import annotations

import itertools

import msgspec

from chatkeep.capabilities import MAX_MESSAGE_BYTES, Capabilities
from chatkeep.forking import Lock
from chatkeep.storage.record import ConversationRecord, MessageRecord

CAPABILITIES = Capabilities(
    max_message_bytes=MAX_MESSAGE_BYTES,
    atomic_replace=True,
    concurrent_appends=True,
    conditional_writes=True,
    stable_positions=True,
    conversation_metadata=True,
    ttl=True,
    purge=True,
    context=True,
    token_counts=True,
    bounded_cost=True,
)


class Stored(msgspec.Struct):
    record: ConversationRecord
    messages: dict[str, MessageRecord] = {}
    """By message id, in the order of positions: dicts keep the order of insertion."""
    context_start: int = 0
    system_id: str = ""
    """Of the newest system message that was stored; `""` where none was."""


class Space:
    """What repositories of one name share."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.conversations: dict[tuple[str, str], Stored] = {}
        # One row of numbers for versions and positions of all conversations: none is ever used again.
        self.numbers = itertools.count(1)
