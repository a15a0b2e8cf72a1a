"""What a backend declares to the suite: how to make a namespace, look behind the backend, and what it can't do.

A backend's harness is a subclass of some sixty lines. Every ability beyond opening is optional, but its absence must be
declared in `cannot` with a reason; the tests that need it are then skipped with that reason. What a backend can't do
by its capabilities is no ability: it is declared in `expected_capabilities` and the suite tests the refusal.
"""

from __future__ import annotations

import abc
import contextlib
import datetime as dt
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal, NoReturn, TypeVar, cast

import pytest

from chatkeep import ChatMemoryRepository, open_async_repository, open_repository
from chatkeep.capabilities import Capabilities
from chatkeep.conformance.blocking import blocking, wait_for

Form = Literal["sync", "async"]
F = TypeVar("F", bound="Callable[..., object] | type")

STATEMENT_LOGGER = "chatkeep.statements"
"""Backends log each statement they send here at DEBUG, text only."""


class Harness(abc.ABC):
    """One backend under test. An instance serves a whole test module."""

    backend: ClassVar[str]
    """The name that `repository.backend` gives."""
    expected_capabilities: ClassVar[Capabilities]
    """What the backend must declare. The suite decides by this, never by what the backend says of itself."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """Abilities (methods of this class) that the engine doesn't have, each with the reason."""
    shortest_ttl: ClassVar[dt.timedelta] = dt.timedelta(seconds=1)
    """The shortest life that the engine keeps apart from a longer one."""
    append_statements: ClassVar[int] = 2
    """The most statements of an append to a conversation that exists, without BEGIN and COMMIT."""
    one_connection: ClassVar[Mapping[str, str]] = {}
    """Options with which a repository has one connection, so that what a call leaves on it meets the next call."""
    impatient: ClassVar[Mapping[str, str]] = {}
    """Options with which a call gives up waiting for another client's lock within a second."""
    drivers: ClassVar[tuple[str, ...]] = ()
    """Modules that may be imported only when the backend is opened."""
    extra: ClassVar[str] = ""
    """What installs the drivers: `chatkeep[extra]`."""
    schemes: ClassVar[tuple[str, ...]] = ()
    """URL schemes that lead to this backend."""
    child_imports: ClassVar[tuple[str, ...]] = ()
    """Modules that a fresh process must import before the URL works there: a backend without an entry point."""

    # --- every harness ---

    @abc.abstractmethod
    def fresh_url(self) -> str:
        """The URL of a new, empty namespace with its schema, in which nobody else writes."""

    @abc.abstractmethod
    def drop(self, url: str) -> None:
        """Remove a namespace that `fresh_url` or `empty_url` made, and refuse any other."""

    def close(self) -> None:
        """Release what the harness holds, after the last test."""
        return

    def open(self, form: Form, url: str, **options: Any) -> ChatMemoryRepository:
        """A repository of the form. The asynchronous one is wrapped, so that one text of a test serves both."""
        if form == "sync":
            return open_repository(url, **options)
        return cast(ChatMemoryRepository, blocking(wait_for(open_async_repository(url, **options))))

    def vector_options(self) -> dict[str, Any]:
        """What a VectorMemory is given to keep vectors in the backend's own tables, beside a model."""
        return {}

    # --- abilities: implement or declare in `cannot` ---

    def stored_messages(self, url: str, conversation_id: str) -> int:
        """How many messages of the conversation lie in the store physically, also expired ones, of any owner."""
        self._undeclared("stored_messages")

    def stored_content(self, url: str, conversation_id: str) -> list[str]:
        """The readable text of each stored message, in order, as a person with the engine's own shell sees it."""
        self._undeclared("stored_content")

    def overwrite_message(self, url: str, message_id: str, **columns: Any) -> None:
        """Set `role`, `content` or `body` of a stored message behind the backend's back."""
        self._undeclared("overwrite_message")

    def overwrite_conversation(self, url: str, conversation_id: str, **columns: Any) -> None:
        """Set `metadata` or `updated_at` of a stored conversation behind the backend's back."""
        self._undeclared("overwrite_conversation")

    def fail_at_step(self, step: int) -> AbstractContextManager[None]:
        """Within the context, the backend's write fails before its step number `step` (from 1) with `Injected`."""
        return _fail_at_statement(step)

    def statements(self) -> AbstractContextManager[list[str]]:
        """The texts of the statements that are sent within the context, BEGIN and COMMIT left out."""
        return _count_statements()

    def rejecting_insert(self, url: str, text: str) -> AbstractContextManager[None]:
        """Within the context, the engine itself refuses a message whose content is `text` as it is inserted."""
        self._undeclared("rejecting_insert")

    def rejecting_commit(self, url: str, text: str) -> AbstractContextManager[None]:
        """Within the context, the engine itself refuses a message whose content is `text` at the commit."""
        self._undeclared("rejecting_commit")

    def kill_sessions(self, url: str) -> int:
        """End the server's sessions in this namespace, as an administrator does; how many there were."""
        self._undeclared("kill_sessions")

    def count_sessions(self, url: str) -> int:
        """How many sessions of this namespace the server holds open now."""
        self._undeclared("count_sessions")

    def dying_at_commit(self, url: str, text: str) -> AbstractContextManager[None]:
        """Within the context, the session that commits a message with content `text` dies there, once."""
        self._undeclared("dying_at_commit")

    def losing_reply(self, url: str, text: str) -> AbstractContextManager[str]:
        """Within the context, a URL through which the reply to the write of a message with content `text` is lost,
        once, after the engine has committed it."""
        self._undeclared("losing_reply")

    def locked(self, url: str, conversation_id: str) -> AbstractContextManager[None]:
        """Within the context, another client holds what an append to the conversation must wait for."""
        self._undeclared("locked")

    def server_zone(self, zone: str) -> AbstractContextManager[None]:
        """Within the context, sessions of newly opened repositories are in this time zone on the server, and write
        dates in an unusual order where it has one."""
        self._undeclared("server_zone")

    def clock(self, moment: dt.datetime) -> AbstractContextManager[None]:
        """Within the context, the backend's clock stands still at `moment`."""
        self._undeclared("clock")

    def explain(self, url: str, statement: str) -> str:
        """The engine's plan for a statement that `statements` has caught."""
        self._undeclared("explain")

    def plan_is_bounded(self, plan: str) -> bool:
        """Whether a plan reads by index what it returns, without a scan or a sort of the whole."""
        self._undeclared("plan_is_bounded")

    def fill(self, url: str, conversation_id: str, messages: int, conversations: int = 0) -> None:
        """Add so many plain messages to an existing conversation, and so many other conversations, quickly."""
        self._undeclared("fill")

    def empty_url(self) -> str:
        """The URL of a new namespace without any schema."""
        self._undeclared("empty_url")

    def schema_history(self, url: str) -> list[tuple[int, str | None]]:
        """Version and checksum of each row of chatkeep_schema_history."""
        self._undeclared("schema_history")

    def change_schema_history(self, url: str, *, version: int, checksum: str | None) -> None:
        """Set the checksum of that version's row, or add a row for a version that has none."""
        self._undeclared("change_schema_history")

    def unreachable_url(self, password: str) -> str:
        """A URL with this password at which no server answers."""
        self._undeclared("unreachable_url")

    # --- what the suite asks ---

    def why_not(self, name: str) -> str | None:
        """Why a test that needs an ability or a capability can't run here, or None where it can."""
        if name in Capabilities.__struct_fields__:
            if getattr(self.expected_capabilities, name):
                return None
            return f"{self.backend} declares no {name}; TestCapabilities checks that it is refused"
        if not hasattr(Harness, name):
            raise ValueError(f"{name!r} is neither a capability nor an ability of a harness")
        return None if name not in self.cannot else f"{self.backend}: {self.cannot[name]}"

    def _undeclared(self, ability: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} neither implements {ability} nor declares it in `cannot`")


def needs(*names: str) -> Callable[[F], F]:
    """A test, or a class of tests, that runs only with these capabilities and abilities of a harness."""
    for name in names:
        if name not in Capabilities.__struct_fields__ and not hasattr(Harness, name):
            raise ValueError(f"{name!r} is neither a capability nor an ability of a harness")

    def mark(function: F) -> F:
        function.contract_needs = names  # type: ignore[union-attr]
        return function

    return mark


def require(harness: Harness, *names: str) -> None:
    """The one place where the suite skips, with the reason that the harness declared."""
    for name in names:
        reason = harness.why_not(name)
        if reason is not None:
            pytest.skip(reason)


def skip_unmet(harness: Harness, request: pytest.FixtureRequest) -> None:
    """Skip a test whose class or function is marked with `needs` for something that isn't there."""
    for holder in (request.cls, request.function):
        require(harness, *getattr(holder, "contract_needs", ()))


class Injected(BaseException):
    """What `fail_at_step` raises. No Exception, so that nothing inside takes it for an engine's error and retries."""


READER = "chatkeep-conformance-reader"
"""The name of a thread whose statements are not counted and do not fail: a test's second reader."""


class _StatementHandler(logging.Handler):
    def __init__(self, seen: Callable[[str], None]) -> None:
        super().__init__(logging.DEBUG)
        self.seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        if record.threadName != READER:
            self.seen(record.getMessage())


@contextlib.contextmanager
def _listening(seen: Callable[[str], None]) -> Iterator[None]:
    logger = logging.getLogger(STATEMENT_LOGGER)
    handler = _StatementHandler(seen)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


@contextlib.contextmanager
def _count_statements() -> Iterator[list[str]]:
    sent: list[str] = []

    def seen(text: str) -> None:
        if text.split(maxsplit=1)[0].upper() not in ("BEGIN", "COMMIT", "ROLLBACK"):
            sent.append(text)

    with _listening(seen):
        yield sent


@contextlib.contextmanager
def _fail_at_statement(step: int) -> Iterator[None]:
    sent = 0

    def seen(text: str) -> None:
        nonlocal sent
        if text.split(maxsplit=1)[0].upper() == "ROLLBACK":
            return
        sent += 1
        if sent == step:
            raise Injected

    with _listening(seen):
        yield
