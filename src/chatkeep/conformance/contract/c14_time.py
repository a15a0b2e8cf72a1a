"""C14 time: aware UTC to the microsecond, whatever the zones of application and server."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, Message
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Harness, needs, require
from chatkeep.conformance.support import said

ZONES = ["UTC", "America/St_Johns", "Pacific/Kiritimati"]
"""Zero, minus three and a half hours with summer time, plus fourteen hours."""

MOMENTS = [
    dt.datetime(1000, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1582, 10, 10, 1, 2, 3, 4, tzinfo=dt.UTC),
    dt.datetime(1883, 11, 18, 12, 3, 58, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2026, 6, 1, 12, 0, 0, 1, tzinfo=dt.UTC),
    dt.datetime(2026, 6, 1, 12, 0, 0, 123_456, tzinfo=dt.UTC),
    dt.datetime(2026, 6, 1, 12, 0, 0, 999_999, tzinfo=dt.UTC),
    dt.datetime(2026, 6, 1, 12, 0, 0, 500_000, tzinfo=dt.UTC),
    dt.datetime(2038, 1, 19, 3, 14, 8, tzinfo=dt.UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
]


@contextlib.contextmanager
def app_zone(zone: str) -> Iterator[None]:
    """This process in another time zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()


def is_utc(moment: dt.datetime) -> bool:
    """A plain datetime of the standard library in UTC."""
    return type(moment) is dt.datetime and moment.tzinfo is dt.UTC and moment.fold == 0


class TestC14Time:
    """Times of messages, of conversations and of expiry."""

    @pytest.mark.parametrize("app", ZONES)
    @pytest.mark.parametrize("server", ZONES)
    def test_times_do_not_depend_on_zones(
        self, harness: Harness, opened: Opened, conversation_id: str, app: str, server: str
    ) -> None:
        """Written in one pair of zones and read in it and in another, to the microsecond, in every century."""
        if server != app:
            require(harness, "server_zone")
        messages = [Message.user(f"line {n}", created_at=moment) for n, moment in enumerate(MOMENTS)]
        with contextlib.ExitStack() as stack:
            stack.enter_context(app_zone(app))
            if server != app:
                stack.enter_context(harness.server_zone(server))
            before = dt.datetime.now(dt.UTC)
            repository = opened()
            repository.append(conversation_id, messages)
            here = repository.find_by_conversation_id(conversation_id)
            conversation = repository.get_conversation(conversation_id)
            after = dt.datetime.now(dt.UTC)
        there = opened().find_by_conversation_id(conversation_id)
        for found in (here, there):
            assert [message.created_at for message in found] == MOMENTS
            assert all(is_utc(message.created_at) for message in found)
        assert conversation is not None
        assert opened().get_conversation(conversation_id) == conversation
        # The server's clock may differ from this machine's by a little, a zone by half an hour at least.
        slack = dt.timedelta(minutes=5)
        assert before - slack <= conversation.created_at <= conversation.updated_at <= after + slack
        assert is_utc(conversation.created_at)
        assert is_utc(conversation.updated_at)

    @needs("ttl")
    @pytest.mark.parametrize("app", ZONES[1:])
    def test_expiry_does_not_depend_on_zones(
        self, harness: Harness, opened: Opened, conversation_id: str, app: str
    ) -> None:
        """An hour is an hour: not gone at once, and not living on for another offset."""
        with app_zone(app):
            repository = opened()
            before = dt.datetime.now(dt.UTC)
            repository.append(conversation_id, said(1), ttl=dt.timedelta(hours=1))
            (entry,) = repository.history(conversation_id).items
        assert entry.expires_at is not None
        assert is_utc(entry.expires_at)
        slack = dt.timedelta(minutes=5)
        assert abs(entry.expires_at - before - dt.timedelta(hours=1)) < slack
        assert opened().count_messages(conversation_id) == 1

    def test_an_aware_time_of_any_zone_is_the_same_moment(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Offsets, summer time, the hour that happens twice (fold) and the hour that doesn't (gap)."""
        berlin = zoneinfo.ZoneInfo("Europe/Berlin")
        moments = [
            dt.datetime(2026, 6, 1, 12, tzinfo=berlin),
            dt.datetime(2026, 1, 1, 12, 0, 0, 7, tzinfo=dt.timezone(dt.timedelta(hours=-9, minutes=-30))),
            dt.datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=0),
            dt.datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=1),
            dt.datetime(2026, 3, 29, 2, 30, tzinfo=berlin, fold=0),
            dt.datetime(2026, 3, 29, 2, 30, tzinfo=berlin, fold=1),
        ]
        expected = [moment.astimezone(dt.UTC).replace(fold=0) for moment in moments]
        assert (expected[3] - expected[2], expected[5] - expected[4]) == (dt.timedelta(hours=1), dt.timedelta(hours=-1))
        messages = [Message.user("Hi", created_at=moment) for moment in moments]
        repository.append(conversation_id, messages)
        found = repository.find_by_conversation_id(conversation_id)
        assert [message.created_at for message in found] == expected
        assert all(is_utc(message.created_at) for message in found)
        assert found == messages

    @pytest.mark.parametrize(
        ("moment", "error"),
        [
            (dt.datetime(2026, 1, 1), ValueError),
            (dt.datetime(999, 12, 31, tzinfo=dt.UTC), ValueError),
            (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), ValueError),
            (dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-2))), ValueError),
            (dt.date(2026, 1, 1), TypeError),
            ("2026-01-01T00:00:00Z", TypeError),
            (0, TypeError),
            (None, TypeError),
        ],
    )
    def test_what_is_no_aware_time_is_refused(self, moment: Any, error: type[Exception]) -> None:
        """A naive time is a ValueError: nobody guesses a zone."""
        with pytest.raises(error, match="created_at"):
            Message.user("Hi", created_at=moment)

    def test_the_creation_time_of_a_conversation_never_changes(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """By no later write; `updated_at` grows with changes of messages and with nothing else."""
        repository.append(conversation_id, said(2))
        first = repository.get_conversation(conversation_id)
        assert first is not None
        updated = first.updated_at
        message = said(1, "more")[0]
        changes: list[Callable[[], object]] = [
            lambda: repository.append(conversation_id, message),
            lambda: repository.save_all(conversation_id, [message, *said(2, "new")]),
            lambda: repository.delete_messages(conversation_id, [message.id]),
            lambda: repository.save_all(conversation_id, []),
        ]
        for change in changes:
            time.sleep(0.002)
            change()
            now = repository.get_conversation(conversation_id)
            assert now is not None
            assert now.created_at == first.created_at
            assert now.updated_at > updated
            updated = now.updated_at
        if repository.capabilities.conversation_metadata:
            repository.update_conversation(conversation_id, title="a", metadata={"b": 1})
        repository.append(conversation_id, [])
        repository.delete_messages(conversation_id, ["unknown"])
        repository.find_by_conversation_id(conversation_id)
        last = repository.get_conversation(conversation_id)
        assert last is not None
        assert (last.created_at, last.updated_at) == (first.created_at, updated)

    @needs("clock")
    def test_the_creation_time_survives_a_clock_that_is_set_back(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A later write by a clock a year behind changes neither the creation time nor the order of messages."""
        repository.append(conversation_id, said(1))
        first = repository.get_conversation(conversation_id)
        with harness.clock(dt.datetime(2001, 1, 1, tzinfo=dt.UTC)):
            repository.append(conversation_id, said(1, "later"))
        second = repository.get_conversation(conversation_id)
        assert first is not None
        assert second is not None
        assert second.created_at == first.created_at
        assert second.version > first.version

    def test_a_recreated_conversation_is_new(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """After a deletion the creation time is that of the new one."""
        repository.append(conversation_id, said(1))
        first = repository.get_conversation(conversation_id)
        repository.delete_by_conversation_id(conversation_id)
        time.sleep(0.002)
        repository.append(conversation_id, said(1))
        second = repository.get_conversation(conversation_id)
        assert first is not None
        assert second is not None
        assert second.created_at > first.created_at
