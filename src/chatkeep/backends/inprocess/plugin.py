"""`inprocess:` is private to its repository, `inprocess:NAME` is shared within the process."""

from __future__ import annotations

from chatkeep.backends.inprocess.space import Space
from chatkeep.backends.inprocess.store import InProcessBackend
from chatkeep.backends.plugin import BackendPlugin, OpenRequest
from chatkeep.forking import Lock

_named: dict[str, Space] = {}
_lock = Lock()


def _open(request: OpenRequest) -> InProcessBackend:
    name = request.url.database
    if not name:
        return InProcessBackend(Space())
    with _lock.now:
        return InProcessBackend(_named.setdefault(name, Space()))


BACKEND = BackendPlugin(name="inprocess", schemes=("inprocess",), open=_open, embedded=True)
