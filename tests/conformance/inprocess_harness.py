"""The harness of the reference implementation: its store is a dict, so looking behind it is looking into the dict."""

import contextlib
import datetime as dt
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from chatkeep.backends.inprocess import plugin, space, store
from chatkeep.capabilities import MAX_MESSAGE_BYTES, Capabilities
from chatkeep.conformance import Harness
from chatkeep.conformance.harness import Injected
from tests import services

NO_SERVER = "there is no server, and so no session"
NO_SCHEMA = "there is no schema to migrate"


class InProcessHarness(Harness):
    backend = "inprocess"
    schemes = ("inprocess",)
    expected_capabilities = Capabilities(
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
    shortest_ttl = dt.timedelta(milliseconds=100)
    append_statements = 0
    cannot: ClassVar = {
        "rejecting_insert": "a dict has no triggers",
        "rejecting_commit": "a dict has no triggers",
        "dying_at_commit": NO_SERVER,
        "losing_reply": NO_SERVER,
        "kill_sessions": NO_SERVER,
        "count_sessions": NO_SERVER,
        "server_zone": NO_SERVER,
        "unreachable_url": NO_SERVER,
        "locked": "the lock is held for microseconds only, and by this process",
        "explain": "there are no statements, so no plan",
        "plan_is_bounded": "there are no statements, so no plan",
        "empty_url": NO_SCHEMA,
        "schema_history": NO_SCHEMA,
        "change_schema_history": NO_SCHEMA,
    }

    def __init__(self) -> None:
        services.service_url(self.backend)  # so that the report of the run names it

    def fresh_url(self) -> str:
        return f"inprocess:test_{uuid.uuid4().hex}"

    def drop(self, url: str) -> None:
        name = url.removeprefix("inprocess:")
        assert name.startswith("test_"), "only namespaces of this harness are dropped"
        plugin._named.pop(name, None)

    def stored_messages(self, url: str, conversation_id: str) -> int:
        return len(self._messages(url, conversation_id))

    def stored_content(self, url: str, conversation_id: str) -> list[str]:
        return [record.content for record in self._messages(url, conversation_id)]

    def overwrite_message(self, url: str, message_id: str, **columns: Any) -> None:
        for conversation in self._space(url).conversations.values():
            if message_id in conversation.messages:
                for column, value in columns.items():
                    setattr(conversation.messages[message_id], column, value)

    def overwrite_conversation(self, url: str, conversation_id: str, **columns: Any) -> None:
        for (_, name), conversation in self._space(url).conversations.items():
            if name == conversation_id:
                for column, value in columns.items():
                    setattr(conversation.record, column, value)

    @contextlib.contextmanager
    def fail_at_step(self, step: int) -> Iterator[None]:
        """A step is a change of the dict: an interrupt may come between any two of them."""
        taken = 0

        def counting(real: Any) -> Any:
            def take(*arguments: Any) -> Any:
                nonlocal taken
                taken += 1
                if taken == step:
                    raise Injected
                return real(*arguments)

            return take

        with pytest.MonkeyPatch.context() as patch:
            for name in ("_placed", "_changed", "_touched"):
                patch.setattr(store.InProcessBackend, name, counting(getattr(store.InProcessBackend, name)))
            yield

    @contextlib.contextmanager
    def clock(self, moment: dt.datetime) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "_now", lambda: moment)
            yield

    def fill(self, url: str, conversation_id: str, messages: int, conversations: int = 0) -> None:
        from chatkeep import Message, open_repository

        with open_repository(url) as repository:
            repository.append(conversation_id, [Message.user(f"filling {n}") for n in range(messages)])

    def _space(self, url: str) -> space.Space:
        return plugin._named.setdefault(url.removeprefix("inprocess:"), space.Space())

    def _messages(self, url: str, conversation_id: str) -> list[Any]:
        return [
            record
            for (_, name), conversation in self._space(url).conversations.items()
            if name == conversation_id
            for record in conversation.messages.values()
        ]
