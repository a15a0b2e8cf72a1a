"""Vectors on SQLite: 32-bit floats in a plain table, compared by sqlite-vec, or by numpy where the user says so.

A plain table and not the extension's virtual one: a connection without the extension (the application's other
processes, the sqlite3 tool, a purge) can still delete messages, and their vectors go with them.
"""

from __future__ import annotations

import array
import sys
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

from chatkeep.backends.relational.session import Session
from chatkeep.backends.relational.vectors import RelationalVectors
from chatkeep.errors import ConfigurationError
from chatkeep.storage.backend import Backend

FUNCTION = "vec_distance_cosine"


class SqliteVectors(RelationalVectors):
    """Exact search over the conversation's vectors, or the owner's."""

    DISTANCES: ClassVar = ("sqlite-vec", "numpy")

    def __init__(self, backend: Backend, database: Any, name: str, distance: str | None) -> None:
        super().__init__(backend, database, name, distance)
        self._load = _load_numpy if distance == "numpy" else _load_extension
        self._ready: weakref.WeakSet[Any] = weakref.WeakSet()

    def prepare(self, session: Session) -> None:
        connection = session.driver_connection
        if connection not in self._ready:
            self._load(connection)
            self._ready.add(connection)

    def encode(self, vector: Sequence[float]) -> bytes:
        floats = array.array("f", vector)
        if sys.byteorder == "big":
            floats.byteswap()
        return floats.tobytes()

    def embedding(self, session: Session) -> str:
        return ":embedding"

    def distance(self, session: Session, dimensions: int) -> str:
        return f"{FUNCTION}(v.embedding, :vector)"


def _load_extension(connection: Any) -> None:
    instead = 'or say distance="numpy", which compares them in Python'
    if not hasattr(connection, "enable_load_extension"):
        raise ConfigurationError(
            f"sqlite: this Python's sqlite3 was built without loadable extensions, so sqlite-vec can't be loaded; use "
            f"another build of Python (configured with --enable-loadable-sqlite-extensions), {instead}"
        )
    try:
        import sqlite_vec
    except ImportError as error:
        raise ConfigurationError(
            f"sqlite: vectors need sqlite-vec, which is not installed; run: pip install 'chatkeep[vectors]', {instead}"
        ) from error
    connection.enable_load_extension(True)
    try:
        sqlite_vec.load(connection)
    finally:
        connection.enable_load_extension(False)


def _load_numpy(connection: Any) -> None:
    import numpy as np

    floats = np.dtype("<f4")

    def distance(one: bytes, other: bytes) -> float:
        # Both are of length 1.
        return 1.0 - float(np.dot(np.frombuffer(one, floats), np.frombuffer(other, floats)))

    connection.create_function(FUNCTION, 2, distance, deterministic=True)


VECTORS = SqliteVectors
