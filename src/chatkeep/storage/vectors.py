"""What a backend that keeps vectors beside its messages fills in: verbs over records, for the same runners."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import msgspec

from chatkeep.migrations.target import Target
from chatkeep.storage.record import MessageRecord


class VectorItem(msgspec.Struct, frozen=True):
    """One message's vector. `position` is the message's in the log, and names it for ever: it is never used again."""

    position: int
    vector: Sequence[float] | None
    """Of length 1. None: the message has no text to embed; its position counts all the same, for what comes next."""


class FoundRecord(msgspec.Struct, frozen=True):
    """A live message, with its conversation and how far it is from what was asked: 0 the same, 2 the opposite."""

    conversation_id: str
    record: MessageRecord
    distance: float


class VectorTables(abc.ABC):
    """The vectors of one model in the tables of a backend. A message that goes takes its vectors with it, in the same
    transaction, whoever deletes it: that is the tables' own rule. No verb reads or writes a text of a message."""

    @abc.abstractmethod
    def target(self) -> Target | None:
        """The migration target of the vector tables; None where the repository was opened with schema="ignore"."""

    @property
    @abc.abstractmethod
    def migrates(self) -> bool:
        """Whether first use brings the tables to this version, or only checks them."""

    @abc.abstractmethod
    def pending(self, owner: str, conversation_id: str, limit: int) -> list[MessageRecord]:
        """The first `limit` live messages behind the last that has a vector, in order."""

    @abc.abstractmethod
    def add(self, dimensions: int | None, rows: Sequence[VectorItem]) -> bool:
        """Store vectors, all or none; what is stored, or has no message any more, is passed over.

        `dimensions` None: no row has a vector. False: nothing was stored, for it is the model's first and has none.
        Raises EmbeddingError where the model's vectors have another dimension.
        """

    @abc.abstractmethod
    def search(
        self, owner: str, conversation_id: str | None, vector: Sequence[float], top_k: int, furthest: float
    ) -> list[FoundRecord]:
        """The nearest live messages in the conversation's context, or in those of all the owner's, nearest first."""

    @abc.abstractmethod
    def delete(self, owner: str, conversation_id: str) -> None:
        """Delete the vectors of a conversation, so that they are made anew."""
