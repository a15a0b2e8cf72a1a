"""A server whose answers are late or don't come: calls end in time, and say what may have happened.

What waits for its time-out waits beside others that do: both forms, and all calls of a test, at the same time.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from chatkeep import Message, Outcome, StorageConnectionError, StorageError, StorageTimeoutError, open_repository
from chatkeep.conformance.harness import Form
from tests.conformance.relational_harness import RelationalHarness
from tests.faults.invariants import check_usable
from tests.proxy import Proxy

FORMS: tuple[Form, ...] = ("sync", "async")
TIMEOUT = 1.0
BOUND = 5.0
"""More than TIMEOUT, for the client waits a little longer than a server that has one, and machines may be busy."""

NO_STATEMENT_TIMEOUT = {"sqlserver": "pymssql has a time-out for the whole process only, and chatkeep offers none"}
"""What an engine can't do, by its name and with the reason."""

SLEEP = 3.0
SLOW_INSERT: dict[str, tuple[list[str], list[str]]] = {
    "postgresql": (
        [
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN IF NEW.content = 'slow' THEN PERFORM pg_sleep({SLEEP}); END IF; RETURN NEW; END $$",
            "CREATE TRIGGER slow BEFORE INSERT ON chat_message FOR EACH ROW EXECUTE FUNCTION slow()",
        ],
        ["DROP FUNCTION slow CASCADE"],
    ),
}
SLOW_INSERT["mysql"] = SLOW_INSERT["mariadb"] = (
    [
        "CREATE TRIGGER slow BEFORE INSERT ON chat_message FOR EACH ROW "
        f"BEGIN IF NEW.content = 'slow' THEN DO SLEEP({SLEEP}); END IF; END"
    ],
    ["DROP TRIGGER slow"],
)
"""What makes the insertion of a message with the text "slow" take long, and what takes it away again."""


@dataclass
class Caller:
    """A repository with a proxy and a conversation of its own, which holds one message."""

    form: Form
    repository: Any
    proxy: Proxy
    conversation: str


@contextlib.contextmanager
def _caller(server: RelationalHarness, form: Form, database: str, **options: Any) -> Iterator[Caller]:
    proxy = Proxy(make_url(database))
    conversation = uuid.uuid4().hex
    with open_repository(database, schema="ignore") as direct:
        direct.append(conversation, Message.user("old", id="old"))
    try:
        with server.open(form, proxy.url(), pool_size=2, **options) as repository:
            yield Caller(form, repository, proxy, conversation)
    finally:
        proxy.close()


def _error(call: Callable[[], Any]) -> StorageError:
    """That of a call which must neither wait for ever nor give up early."""
    begun = time.monotonic()
    with pytest.raises(StorageError) as caught:
        call()
    assert time.monotonic() - begun >= TIMEOUT * 0.9
    return caught.value


def _errors(callers: list[Caller], calls: list[Callable[[], Any]], bound: float = BOUND) -> list[StorageError]:
    """Those of calls that run at the same time, each for a caller."""
    with ThreadPoolExecutor(len(calls)) as threads:
        begun = time.monotonic()
        running = [threads.submit(_error, call) for call in calls]
        try:
            return [each.result(max(begun + bound - time.monotonic(), 0.01)) for each in running]
        except TimeoutError:
            pytest.fail(f"no answer from the server, and none to the caller within {bound} s")
        finally:
            for caller in callers:
                caller.proxy.flow()  # so that the threads end


def _texts(url: str, conversation: str) -> list[str]:
    with open_repository(url, schema="ignore") as direct:
        return [message.text for message in direct.find_by_conversation_id(conversation)]


@pytest.fixture
def database(server: RelationalHarness, database: str) -> str:
    if server.backend in NO_STATEMENT_TIMEOUT:
        pytest.skip(f"{server.backend}: {NO_STATEMENT_TIMEOUT[server.backend]}")
    return database


NEW = Message.user("marker", id="marker")


@dataclass(frozen=True)
class Silence:
    """When replies stop to come, the call that meets it, what the call says, and what is stored."""

    begin: Callable[[Caller], None]
    call: Callable[[Caller], Any]
    outcome: Outcome
    stored: list[str]


SILENCES = {
    "append, at the commit": Silence(
        lambda on: on.proxy.stall_commit("marker"),
        lambda on: on.repository.append(on.conversation, NEW),
        Outcome.UNKNOWN,
        ["old", "marker"],
    ),
    "save_all, at the commit": Silence(
        lambda on: on.proxy.stall_commit("marker"),
        lambda on: on.repository.save_all(on.conversation, [NEW]),
        Outcome.UNKNOWN,
        ["marker"],
    ),
    "save_all, before the commit": Silence(
        lambda on: on.proxy.stall_reply(on.conversation),  # by which the lock is taken
        lambda on: on.repository.save_all(on.conversation, [NEW]),
        Outcome.NOT_APPLIED,
        ["old"],
    ),
    "read": Silence(
        lambda on: on.proxy.stall(),
        lambda on: on.repository.find_by_conversation_id(on.conversation),
        Outcome.NOT_APPLIED,
        ["old"],
    ),
}


def test_calls_end_although_no_reply_comes(server: RelationalHarness, database: str) -> None:
    with contextlib.ExitStack() as stack:
        cases = [
            (stack.enter_context(_caller(server, form, database, statement_timeout=f"{TIMEOUT}s")), name, silence)
            for form in FORMS
            for name, silence in SILENCES.items()
        ]
        for caller, _, silence in cases:
            check_usable(caller.repository, calls=1)
            silence.begin(caller)
        callers = [caller for caller, _, _ in cases]
        errors = _errors(callers, [lambda on=on, call=silence.call: call(on) for on, _, silence in cases])
        for (caller, name, silence), error in zip(cases, errors, strict=True):
            assert isinstance(error, StorageTimeoutError), (caller.form, name, error)
            assert error.outcome is silence.outcome, (caller.form, name)
            check_usable(caller.repository)
            assert _texts(database, caller.conversation) == silence.stored, (caller.form, name)
            if silence.outcome is Outcome.UNKNOWN:
                silence.call(caller)  # as one does then
                assert _texts(database, caller.conversation) == silence.stored, (caller.form, name)


def test_a_slow_statement_is_a_time_out_and_is_what_its_outcome_says(server: RelationalHarness, database: str) -> None:
    slow = Message.user("slow", id="slow")
    with contextlib.ExitStack() as stack:
        callers = [
            stack.enter_context(_caller(server, form, database, statement_timeout=f"{TIMEOUT}s")) for form in FORMS
        ]
        with server.within(database, *SLOW_INSERT[server.backend]):
            begun = time.monotonic()
            calls = [lambda on=on: on.repository.append(on.conversation, slow) for on in callers]
            errors = _errors(callers, calls)
            for caller, error in zip(callers, errors, strict=True):
                assert isinstance(error, StorageTimeoutError)
                if server.backend != "mysql":  # whose own time-out is for reads only
                    assert error.outcome is Outcome.NOT_APPLIED
                check_usable(caller.repository)
            # The server may go on with what its client has given up, up to the commit where that was sent along.
            time.sleep(max(0.0, begun + SLEEP + 0.5 - time.monotonic()))
            for caller, error in zip(callers, errors, strict=True):
                stored = _texts(database, caller.conversation)
                assert stored == ["old"] or (error.outcome is Outcome.UNKNOWN and stored == ["old", "slow"])
        for caller in callers:
            caller.repository.append(caller.conversation, slow)
            assert _texts(database, caller.conversation) == ["old", "slow"]


def test_a_connection_that_is_not_greeted_is_given_up(server: RelationalHarness, database: str) -> None:
    options = {"connect_timeout": f"{TIMEOUT}s", "retry_timeout": "0.1s", "schema": "ignore"}
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(_caller(server, form, database, **options)) for form in FORMS]
        for caller in callers:
            caller.proxy.stall()
        calls = [lambda on=on: on.repository.append(on.conversation, NEW) for on in callers]
        # Seconds are whole for libpq, and two at least.
        for caller, error in zip(callers, _errors(callers, calls, bound=2 * BOUND), strict=True):
            assert isinstance(error, (StorageTimeoutError, StorageConnectionError))
            assert error.outcome is Outcome.NOT_APPLIED
            check_usable(caller.repository)
            assert _texts(database, caller.conversation) == ["old"]


def test_replies_that_are_late_but_in_time_are_waited_for(server: RelationalHarness, form: Form, database: str) -> None:
    with _caller(server, form, database, statement_timeout=f"{TIMEOUT}s") as caller:
        check_usable(caller.repository, calls=1)
        caller.proxy.flow(delay=0.3)
        begun = time.monotonic()
        caller.repository.append(caller.conversation, Message.user("late"))
        assert time.monotonic() - begun >= 0.3
        assert _texts(database, caller.conversation) == ["old", "late"]
