"""The reference implementation: a dict and a lock."""

from chatkeep.backends.inprocess.plugin import BACKEND

__all__ = ["BACKEND"]
