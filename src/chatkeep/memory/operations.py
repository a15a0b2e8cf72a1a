"""The operations of a memory, each once, as steps: what is read, what is decided, what is stored.

KeepOperations leave the log whole and move the start of the context; DeleteOperations store what is in view, no more.
"""

from __future__ import annotations

import abc
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from chatkeep.errors import ConcurrentChangeError, ContentionError
from chatkeep.identifiers import check_conversation_id
from chatkeep.memory.groups import is_system
from chatkeep.memory.limits import Limit, check_limit, check_messages
from chatkeep.memory.rules import Boundary, Kind, MessageBoundary, sizes_of
from chatkeep.memory.steps import Ask, Pause, Steps
from chatkeep.memory.window import View, newest_system, without_repeated_system
from chatkeep.message import Message
from chatkeep.storage.backend import message_id_taken
from chatkeep.storage.codec import same_content
from chatkeep.storage.context import (
    Context,
    Counted,
    extend_context,
    keep_only,
    read_context,
    store_counts,
    with_counts,
)
from chatkeep.storage.record import MessageRecord
from chatkeep.storage.repository import Calls
from chatkeep.storage.runner import Call

WHOLE = 1000
"""Messages read at once where what is stored is no more than a window."""


class Settings(msgspec.Struct, frozen=True):
    """What a memory was made with, checked."""

    calls: Callable[[], Calls]
    """Raises RepositoryClosedError for a closed repository."""
    kind: Kind
    boundary: Boundary
    limit: Limit
    on_overflow: str
    retry_seconds: float


class Operations(abc.ABC):
    """Every method gives the steps of one operation."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kind = settings.kind
        self._boundary = settings.boundary

    def get(self, conversation_id: str, upcoming: Iterable[Message]) -> Steps[list[Message]]:
        calls = self._settings.calls()
        check_conversation_id(conversation_id)
        added = check_messages(upcoming, "upcoming")
        limit = yield from self._asked_limit(conversation_id)
        view: View = yield self._read(calls, conversation_id, limit, added)
        return view.checked(self._settings.on_overflow, conversation_id)

    def add(self, conversation_id: str, messages: Iterable[Message]) -> Steps[None]:
        calls = self._settings.calls()
        check_conversation_id(conversation_id)
        added = check_messages(messages, "messages")
        if added:
            yield from self._add(calls, conversation_id, added)

    def set(self, conversation_id: str, messages: Iterable[Message]) -> Steps[None]:
        calls = self._settings.calls()
        check_conversation_id(conversation_id)
        yield from self._set(calls, conversation_id, check_messages(messages, "messages"))

    def clear(self, conversation_id: str) -> Steps[None]:
        calls = self._settings.calls()
        check_conversation_id(conversation_id)
        yield from self._set(calls, conversation_id, [])

    @abc.abstractmethod
    def _read(self, calls: Calls, conversation_id: str, limit: int, upcoming: list[Message]) -> Call[View]: ...

    @abc.abstractmethod
    def _add(self, calls: Calls, conversation_id: str, messages: list[Message]) -> Steps[None]: ...

    @abc.abstractmethod
    def _set(self, calls: Calls, conversation_id: str, messages: list[Message]) -> Steps[None]: ...

    # --- steps ---

    def _asked_limit(self, conversation_id: str) -> Steps[int]:
        limit = self._settings.limit
        if callable(limit):
            limit = yield Ask(limit, conversation_id)
        return check_limit(limit, self._kind.parameter)

    def _counted(self, messages: Iterable[Message]) -> Counted | None:
        key = self._kind.estimator_key
        return Counted(key, {message.id: self._kind.count(message) for message in messages}) if key else None

    def _view_over(self, context: Context, new: Sequence[Message], limit: int, counts: dict[str, int]) -> View | None:
        """The view over what was read and what comes new."""
        new = without_repeated_system(new, context.system)
        return self._boundary.view(
            [*context.messages, *new],
            newest_system(new, context.system),
            limit,
            self._kind.measure(counts),
            whole=context.whole,
            overhead=self._kind.overhead,
        )

    def _reading(
        self,
        calls: Calls,
        conversation_id: str,
        limit: int,
        added: list[Message],
        first: int,
        view_over: Callable[[Context, list[Message], dict[str, int]], View | None],
        own: dict[str, int],
    ) -> Call[tuple[View, Context]]:
        """A read of as much as the view takes. Counts what has no count, and stores those counts.

        `own`: the counts of `added`, as far as they are known.
        """
        uncounted: dict[int, int] = {}

        def decide(context: Context) -> tuple[View, Context] | None:
            stored = {message.id for message in context.messages}
            new = [each for each in added if each.id not in stored]
            counts: dict[str, int] = {}
            fresh: dict[int, int] = {}
            if self._kind.estimator_key:
                counts, fresh = context.count(self._kind.estimator_key, self._kind.count)
                own.update((each.id, self._kind.count(each)) for each in new if each.id not in own)
                counts.update(own)
            view = view_over(context, new, counts)
            uncounted.update(fresh)
            if view is None:
                return None
            store_counts(calls, conversation_id, self._kind.estimator_key, uncounted)
            return view, context

        def more(context: Context) -> int:
            size = sum(record.token_count or 0 for record in context.records)
            return self._kind.more(len(context.records), size, limit)

        return read_context(calls, conversation_id, first, decide, more)


class KeepOperations(Operations):
    """Nothing is deleted."""

    def _read(self, calls: Calls, conversation_id: str, limit: int, upcoming: list[Message]) -> Call[View]:
        reading = self._reading(
            calls,
            conversation_id,
            limit,
            upcoming,
            self._kind.first(limit),
            lambda context, new, counts: self._view_over(context, new, limit, counts),
            {},
        )
        return Call(lambda again: reading.work(again)[0], repeatable=True)

    def _add(self, calls: Calls, conversation_id: str, messages: list[Message]) -> Steps[None]:
        if any(is_system(message) for message in messages):
            current: tuple[Message | None] = yield read_context(
                calls, conversation_id, 1, lambda context: (context.system,), lambda context: 1
            )
            messages = without_repeated_system(messages, current[0])
        if messages:
            yield extend_context(calls, conversation_id, messages, self._counted(messages))

    def _set(self, calls: Calls, conversation_id: str, messages: list[Message]) -> Steps[None]:
        messages = without_repeated_system(messages, None)
        yield extend_context(calls, conversation_id, messages, self._counted(messages), restart=True)


class DeleteOperations(Operations):
    """After each addition exactly the view stays stored, and a group that is still being answered."""

    def _read(self, calls: Calls, conversation_id: str, limit: int, upcoming: list[Message]) -> Call[View]:
        reading = self._stored(calls, conversation_id, limit, upcoming, {}, trim=True)
        return Call(lambda again: reading.work(again)[0], repeatable=True)

    def _add(self, calls: Calls, conversation_id: str, messages: list[Message]) -> Steps[None]:
        limit = yield from self._asked_limit(conversation_id)
        counted = self._counted(messages)
        fresh = {record.message_id: record for record in with_counts(calls._encode(messages), counted)}
        own = dict(counted.counts) if counted else {}
        reading = self._stored(calls, conversation_id, limit, messages, own, trim=False)

        def plan(found: tuple[View, Context]) -> Call[int] | None:
            view, context = found
            stored = {record.message_id: record for record in context.records}
            for message_id in fresh.keys() & stored.keys():
                if not same_content(stored[message_id], fresh[message_id]):
                    raise message_id_taken(message_id, conversation_id)
            kept = _in_order([*view.messages, *view.answering], {**fresh, **stored})
            if kept == context.records and context.whole and not context.start:
                return None
            behind = len(kept) - len(context.records)
            grown = context.whole and not context.start and kept[: len(context.records)] == context.records
            return keep_only(calls, conversation_id, kept, context.version, appended=behind if grown else None)

        yield from self._until_unchanged(reading, plan)

    def _set(self, calls: Calls, conversation_id: str, messages: list[Message]) -> Steps[None]:
        limit = yield from self._asked_limit(conversation_id)
        counted = self._counted(messages)
        fresh = {record.message_id: record for record in with_counts(calls._encode(messages), counted)}
        measure = self._kind.measure(counted.counts if counted else {})
        owned = list({message.id: message for message in messages}.values())
        if isinstance(self._boundary, MessageBoundary):
            kept = self._boundary.trimmed(owned, limit, sizes_of(measure, self._kind.overhead))
        else:
            view = self._boundary.view(owned, newest_system(owned, None), limit, measure, overhead=self._kind.overhead)
            assert view is not None
            kept = [*view.messages, *view.answering]
        records = _in_order(kept, fresh)

        def version(_: bool) -> int:
            return calls.backend.current_version(calls.owner, conversation_id)

        def plan(current: int) -> Call[int] | None:
            # There is nothing to clear where nothing is.
            return keep_only(calls, conversation_id, records, current) if records or current else None

        yield from self._until_unchanged(Call(version, repeatable=True), plan)

    def _stored(
        self,
        calls: Calls,
        conversation_id: str,
        limit: int,
        added: list[Message],
        own: dict[str, int],
        *,
        trim: bool,
    ) -> Call[tuple[View, Context]]:
        """What is stored, and the view after these were added; `trim`: also where nothing is."""

        def view_over(context: Context, new: list[Message], counts: dict[str, int]) -> View | None:
            if not isinstance(self._boundary, MessageBoundary):
                return self._view_over(context, new, limit, counts)
            if not context.whole:
                return None
            measure = self._kind.measure(counts)
            sizes = sizes_of(measure, self._kind.overhead)
            state = self._boundary.after(context.messages, new, limit, sizes)
            if trim:
                state = self._boundary.trimmed(state, limit, sizes)
            return View(state, sizes.of(state), limit, measure.unit)

        return self._reading(calls, conversation_id, limit, added, WHOLE, view_over, own)

    def _until_unchanged(self, reading: Call[Any], plan: Callable[[Any], Call[int] | None]) -> Steps[None]:
        """Read, plan and store, until nobody changed the conversation in between."""
        deadline = time.monotonic() + self._settings.retry_seconds
        pause = 0.01
        while True:
            found = yield reading
            call = plan(found)
            if call is None:
                return
            try:
                yield call
                return
            except ConcurrentChangeError as error:
                if time.monotonic() > deadline:
                    raise ContentionError("the conversation was changed by others again and again") from error
            yield Pause(random.uniform(0, pause))  # noqa: S311 (spreads writers, keeps no secret)
            pause = min(2 * pause, 0.5)


def _in_order(messages: Iterable[Message], records: dict[str, MessageRecord]) -> list[MessageRecord]:
    """The records of a view. A message of which two parts are shown is stored once, where the last of it stands."""
    last = {message.id: index for index, message in enumerate(messages)}
    return [records[message_id] for message_id in sorted(last, key=last.__getitem__)]
