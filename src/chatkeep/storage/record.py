"""The flat structs that backends speak. No backend ever sees a Message, no public code a record."""

from __future__ import annotations

import datetime as dt
import enum

import msgspec


class Unset(enum.Enum):
    """The default of arguments for which None has a meaning of its own."""

    UNSET = "not given"


UNSET = Unset.UNSET


class MessageRecord(msgspec.Struct, gc=False):
    """One row of chat_message."""

    message_id: str
    role: str
    content: str
    """The readable text, for people and for search: NUL and lone surrogates appear as U+FFFD."""
    body: str | None
    """JSON of what `content` doesn't hold; None for a message that is one plain text."""
    created_at: dt.datetime
    token_count: int | None = None
    expires_at: dt.datetime | None = None
    position: int = 0
    """Public position; backends set it on the way out."""
    token_estimator: str | None = None
    """Name and version of the estimator that made `token_count`."""


class ContextRecord(msgspec.Struct):
    """What a memory looks at: the newest messages of the context, and the conversation's system message."""

    messages: list[MessageRecord]
    """Live messages behind the start of the context, oldest first."""
    system: MessageRecord | None = None
    """The newest system message of the context. Where it expired or was deleted: None, and no older one."""
    version: int = 0
    """0 where the conversation does not exist."""
    start: int = 0
    """Public position behind which the context begins; 0 where nothing was cleared."""


class ConversationRecord(msgspec.Struct):
    """One row of chat_conversation, with the live message count."""

    conversation_id: str
    owner: str
    title: str | None
    metadata: str | None
    """JSON text; None for `{}`."""
    created_at: dt.datetime
    updated_at: dt.datetime
    version: int
    message_count: int


class Purged(msgspec.Struct):
    """What one batch of a purge removed; `more` says whether another batch may find something."""

    messages: int = 0
    conversations: int = 0
    more: bool = False


class Never(enum.Enum):
    """`chatkeep.NEVER`: no expiry, also in a repository that was opened with a `ttl`."""

    NEVER = "never"

    def __repr__(self) -> str:
        return "chatkeep.NEVER"


NEVER = Never.NEVER


class Ttl(msgspec.Struct, frozen=True):
    """How long the messages of one write live.

    `explicit` is true where the call named it: a `save_all` then gives every message this life; otherwise ids that
    were stored before keep their expiry.
    """

    life: dt.timedelta | None
    explicit: bool = False
