"""What the engines with servers share about their connections: the pool's settings, and a look at an idle socket."""

from __future__ import annotations

import select
from collections.abc import Mapping
from typing import Any


def pool_arguments(options: Mapping[str, Any], pool_slice: float) -> dict[str, Any]:
    """Arguments of create_engine for a pool of connections that are in autocommit mode by themselves."""
    return {
        "pool_size": options.get("pool_size", 10),
        "max_overflow": 0,
        "pool_timeout": pool_slice,
        "pool_recycle": options.get("pool_recycle", 1800.0),
        "pool_reset_on_return": None,
        "_initialize": False,
    }


def is_silent(socket: Any) -> bool:
    """Whether nothing came in on the socket (or descriptor) of an idle connection: the end of the stream, or a farewell
    of the server, would be there to read."""
    waiting = select.poll()
    waiting.register(socket, select.POLLIN)
    return not waiting.poll(0)
