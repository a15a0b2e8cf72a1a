"""Vectors on PostgreSQL: the extension pgvector, in whichever schema it lies."""

from __future__ import annotations

from collections.abc import Sequence

from chatkeep.backends.relational.session import Session
from chatkeep.backends.relational.vectors import RelationalVectors
from chatkeep.errors import SchemaError

SELECT_HOME = """
    SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'
"""


class PostgresqlVectors(RelationalVectors):
    """Exact search. An index for searches across an owner's conversations: docs/vectors.md."""

    keep = "FOR KEY SHARE"
    _home: str | None = None

    def prepare(self, session: Session) -> None:
        if self._home is None:
            row = session.row(SELECT_HOME)
            if row is None:
                raise SchemaError(
                    "postgresql: the extension vector (pgvector) is not in this database; "
                    "`chatkeep migrate --vectors` makes it where the server has it",
                    backend="postgresql",
                )
            self._home = row[0]

    def encode(self, vector: Sequence[float]) -> str:
        return "[" + ",".join(map(repr, vector)) + "]"

    def embedding(self, session: Session) -> str:
        # A driver can't know the type, and the extension need not lie on the search_path.
        return f"CAST(CAST(:embedding AS text) AS {self._home}.vector)"

    def distance(self, session: Session, dimensions: int) -> str:
        # With the number of dimensions, as the expression of an index has to be.
        kind = f"{self._home}.vector({int(dimensions)})"
        return f"CAST(v.embedding AS {kind}) OPERATOR({self._home}.<=>) CAST(CAST(:vector AS text) AS {kind})"


VECTORS = PostgresqlVectors
