"""The harness of a store with four verbs: a person states its name, its claims and a fresh place, and no more."""

from __future__ import annotations

import contextlib
import datetime as dt
import uuid
from collections.abc import Iterator
from typing import ClassVar

import pytest

from chatkeep import Message, open_repository
from chatkeep.backends.custom import state
from chatkeep.conformance.harness import Harness

NO_SERVER = "there is no server, and so no session"
NO_SCHEMA = "there is no schema to migrate"
NO_ROWS = "the store's own form is not known here; its own tests look behind it"


class StoreHarness(Harness):
    """For `ChatMemoryStore` and `AsyncChatMemoryStore`.

    A subclass states `backend` and `schemes` (as given to `store_plugin`), `expected_capabilities` (what the store
    claims), `fresh_url` (an empty place) and `drop`; `child_imports` names the module that registers the store, for the
    tests that open it in processes of their own. It may override `stored_messages` to look behind the store.
    """

    append_statements = 2
    cannot: ClassVar = {
        "rejecting_insert": NO_ROWS,
        "rejecting_commit": NO_ROWS,
        "overwrite_message": NO_ROWS,
        "stored_content": NO_ROWS,
        "overwrite_conversation": "four verbs keep neither metadata nor times of change",
        "dying_at_commit": NO_SERVER,
        "losing_reply": NO_SERVER,
        "kill_sessions": NO_SERVER,
        "count_sessions": NO_SERVER,
        "server_zone": NO_SERVER,
        "unreachable_url": NO_SERVER,
        "locked": "the lock is one of this process and held for the length of a call",
        "explain": "there are no statements, so no plan",
        "plan_is_bounded": "there are no statements, so no plan",
        "empty_url": NO_SCHEMA,
        "schema_history": NO_SCHEMA,
        "change_schema_history": NO_SCHEMA,
    }

    def stored_messages(self, url: str, conversation_id: str) -> int:
        with open_repository(url) as repository:
            return repository.count_messages(conversation_id)

    @contextlib.contextmanager
    def clock(self, moment: dt.datetime) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state, "_now", lambda: moment)
            yield

    def fill(self, url: str, conversation_id: str, messages: int, conversations: int = 0) -> None:
        with open_repository(url) as repository:
            repository.append(conversation_id, [Message.user(f"filling {n}") for n in range(messages)])
            for n in range(conversations):
                repository.append(f"filling-{uuid.uuid4().hex}", Message.user(f"filling {n}"))
