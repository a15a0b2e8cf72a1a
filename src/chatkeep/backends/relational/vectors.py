"""Vectors in the tables of a SQL engine, beside the messages: what PostgreSQL and SQLite share.

The schema is optional (schemas/<backend>/vectors), with a history of its own, so that a database without an extension
for vectors has all the rest.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from chatkeep.backends.relational.database import Database
from chatkeep.backends.relational.migration import relational_target, vector_target
from chatkeep.backends.relational.session import Session
from chatkeep.backends.relational.statements import NUMBERS, Statement
from chatkeep.errors import EmbeddingError
from chatkeep.migrations.target import Target
from chatkeep.storage.backend import Backend
from chatkeep.storage.record import MessageRecord
from chatkeep.storage.vectors import FoundRecord, VectorItem, VectorTables

CONVERSATION_KEY = """
    (SELECT conversation_key FROM chat_conversation WHERE owner = :owner AND conversation_id = :conversation_id)
"""
SELECT_MODEL = "SELECT model_key, dimensions FROM chat_vector_model WHERE name = :name"
INSERT_MODEL = """
    INSERT INTO chat_vector_model (name, dimensions) VALUES (:name, :dimensions) ON CONFLICT (name) DO NOTHING
"""
SELECT_PENDING = f"""
    SELECT {{message_columns}} FROM chat_message m
    WHERE m.conversation_key = {CONVERSATION_KEY} AND (m.expires_at IS NULL OR m.expires_at > {{moment}})
      AND m.position > COALESCE((SELECT max(v.position) FROM chat_message_vector v
                                 WHERE v.conversation_key = {CONVERSATION_KEY} AND v.model_key = :model_key), 0)
    ORDER BY m.position LIMIT :limit
"""  # noqa: S608
# A message that is deleted meanwhile gives no row, and the lock keeps it until the vector is stored.
INSERT_VECTOR = """
    INSERT INTO chat_message_vector (conversation_key, model_key, position, embedding)
    SELECT m.conversation_key, :model_key, m.position, {embedding} FROM chat_message m
    WHERE m.conversation_key = :conversation_key AND m.position = :position {keep}
    ON CONFLICT (conversation_key, model_key, position) DO NOTHING
"""
# The inner query ranks by numbers alone; texts are read for what it found.
SEARCH = """
    SELECT {message_columns}, c.conversation_id, found.distance FROM (
        SELECT v.conversation_key, v.position, {distance} AS distance
        FROM chat_conversation c
        JOIN chat_message_vector v ON v.conversation_key = c.conversation_key
        JOIN chat_message m ON m.conversation_key = v.conversation_key AND m.position = v.position
        WHERE c.owner = :owner {one} AND v.model_key = :model_key AND v.embedding IS NOT NULL
          AND m.position > c.context_start AND (m.expires_at IS NULL OR m.expires_at > {moment})
        ORDER BY distance, v.position DESC LIMIT :top_k
    ) found
    JOIN chat_message m ON m.conversation_key = found.conversation_key AND m.position = found.position
    JOIN chat_conversation c ON c.conversation_key = found.conversation_key
    WHERE found.distance <= :furthest
    ORDER BY found.distance, m.conversation_key DESC, m.position DESC
"""
DELETE_VECTORS = f"""
    DELETE FROM chat_message_vector WHERE conversation_key = {CONVERSATION_KEY} AND model_key = :model_key
"""  # noqa: S608


@dataclasses.dataclass(frozen=True)
class Model:
    """A row of chat_vector_model, which never changes."""

    key: int
    dimensions: int


class RelationalVectors(VectorTables):
    """A subclass says how the engine spells a vector and a distance."""

    DISTANCES: ClassVar[tuple[str, ...]] = ()
    """What the user may choose for the distance, the default first."""
    keep = ""
    """The end of a read that keeps its rows from being deleted until the transaction ends."""

    def __init__(self, backend: Backend, database: Database, name: str, distance: str | None) -> None:
        if distance is not None and distance not in self.DISTANCES:
            known = ", ".join(repr(choice) for choice in self.DISTANCES) or "nothing to choose"
            raise ValueError(f"distance: {distance!r} is not known on {backend.name}; there is {known}")
        self._backend = backend
        self._database = database
        self._name = name
        self._known: Model | None = None

    @property
    def migrates(self) -> bool:
        return self._database.request.schema == "migrate"

    def target(self) -> Target | None:
        if self._database.request.schema == "ignore":
            return None
        return vector_target(relational_target(self._database.dialect, self._database.request, self._backend))

    def pending(self, owner: str, conversation_id: str, limit: int) -> list[MessageRecord]:
        with self._database.session() as session:
            self.prepare(session)
            model = self._model(session)
            of = {"owner": owner, "conversation_id": conversation_id, "limit": limit}
            rows = session.rows(self._sql(SELECT_PENDING), {**of, "model_key": model.key if model else 0})
            return [session.dialect.message(row) for row in rows]

    def add(self, dimensions: int | None, rows: Sequence[VectorItem]) -> bool:
        with self._database.session() as session:
            self.prepare(session)
            with session.transaction():
                model = self._model(session, dimensions)
                if model is None:
                    if dimensions is None:
                        return False
                    session.run(self._sql(INSERT_MODEL), {"name": self._name, "dimensions": dimensions})
                    model = self._model(session, dimensions)
                    assert model is not None
                statement = self._sql(INSERT_VECTOR, embedding=self.embedding(session))
                values = [self._values(model, row) for row in rows]
                session.run_many(statement, values)
            self._known = model  # not before the commit
            return True

    def search(
        self, owner: str, conversation_id: str | None, vector: Sequence[float], top_k: int, furthest: float
    ) -> list[FoundRecord]:
        with self._database.session() as session:
            self.prepare(session)
            model = self._model(session, len(vector))
            if model is None:
                return []
            one = "" if conversation_id is None else "AND c.conversation_id = :conversation_id"
            statement = self._sql(SEARCH, distance=self.distance(session, model.dimensions), one=one)
            values: dict[str, Any] = {"owner": owner, "model_key": model.key, "top_k": top_k, "furthest": furthest}
            values["vector"] = self.encode(vector)
            if conversation_id is not None:
                values["conversation_id"] = conversation_id
            rows = session.rows(statement, values)
            return [FoundRecord(row[-2], session.dialect.message(row[:-2]), row[-1]) for row in rows]

    def delete(self, owner: str, conversation_id: str) -> None:
        with self._database.session() as session:
            model = self._model(session)
            if model is not None:
                of = {"owner": owner, "conversation_id": conversation_id, "model_key": model.key}
                session.run(self._sql(DELETE_VECTORS), of)

    # --- for each engine ---

    def prepare(self, session: Session) -> None:
        """Make a connection ready for vectors."""
        return

    @abc.abstractmethod
    def encode(self, vector: Sequence[float]) -> Any:
        """A vector as the driver takes it."""

    @abc.abstractmethod
    def embedding(self, session: Session) -> str:
        """`:embedding` as a value of the column."""

    @abc.abstractmethod
    def distance(self, session: Session, dimensions: int) -> str:
        """The cosine distance of `v.embedding` and `:vector`."""

    # --- shared ---

    def _sql(self, text: str, **fragments: str) -> Statement:
        dialect = self._database.dialect
        shared = {"message_columns": dialect.MESSAGE_COLUMNS, "moment": dialect.moment, "keep": self.keep}
        return dialect.compile(text, **shared, **fragments)

    def _model(self, session: Session, dimensions: int | None = None) -> Model | None:
        model = self._known
        if model is None:
            row = session.row(self._sql(SELECT_MODEL), {"name": self._name})
            model = None if row is None else Model(*row)
        if model is not None and dimensions not in (None, model.dimensions):
            raise EmbeddingError(
                f"the vectors of model {self._name!r} have {model.dimensions} dimensions, and these have {dimensions}; "
                f"give another model a name of its own"
            )
        return model

    def _values(self, model: Model, row: VectorItem) -> dict[str, Any]:
        key, number = divmod(row.position, NUMBERS)
        vector = None if row.vector is None else self.encode(row.vector)
        return {"model_key": model.key, "conversation_key": key, "position": number, "embedding": vector}
