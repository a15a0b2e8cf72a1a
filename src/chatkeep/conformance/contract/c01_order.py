"""C1 order: read order is write order, by a position that the write allocates. Time never orders anything."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pytest

from chatkeep import ChatMemoryRepository, Message
from chatkeep.conformance.harness import Harness, needs
from chatkeep.conformance.support import all_pages, messages_of, new_id, said, texts, whole_history

NOON = dt.datetime(2026, 6, 1, 12, 0, 0, 123_456, tzinfo=dt.UTC)


class TestC01Order:
    """Messages come back in the order in which they were written, whatever clocks and ids say."""

    @pytest.mark.parametrize("size", [1, 2, 50, 1000])
    def test_messages_of_one_append_come_back_in_write_order(
        self, repository: ChatMemoryRepository, conversation_id: str, size: int
    ) -> None:
        """One call of any size keeps the order of its list, and a second call goes behind it."""
        first, second = said(size, "first"), said(size, "second")
        repository.append(conversation_id, first)
        repository.append(conversation_id, second)
        assert repository.find_by_conversation_id(conversation_id) == first + second

    @pytest.mark.parametrize("size", [1, 2, 50, 1000])
    def test_messages_of_save_all_come_back_in_write_order(
        self, repository: ChatMemoryRepository, conversation_id: str, size: int
    ) -> None:
        """A replaced list has the order of the new list, also where it holds the old messages turned round."""
        messages = said(size)
        repository.save_all(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        repository.save_all(conversation_id, messages[::-1])
        assert repository.find_by_conversation_id(conversation_id) == messages[::-1]

    def test_appends_one_by_one_come_back_in_write_order(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Fifty calls of one message, more than a coarse clock can tell apart."""
        messages = said(50)
        for message in messages:
            repository.append(conversation_id, message)
        assert repository.find_by_conversation_id(conversation_id) == messages

    @pytest.mark.parametrize("step", [dt.timedelta(0), dt.timedelta(days=-1)], ids=["equal", "backwards"])
    @pytest.mark.parametrize("call", ["append", "each", "save_all"])
    def test_timestamps_of_messages_order_nothing(
        self, repository: ChatMemoryRepository, conversation_id: str, step: dt.timedelta, call: str
    ) -> None:
        """Equal and falling `created_at` leave read order, window and history as written."""
        messages = [Message.user(f"line {n}", created_at=NOON + n * step) for n in range(20)]
        if call == "each":
            for message in messages:
                repository.append(conversation_id, message)
        else:
            getattr(repository, call)(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert repository.find_by_conversation_id(conversation_id, limit=7) == messages[-7:]
        assert messages_of(whole_history(repository, conversation_id, 3)) == messages

    @pytest.mark.parametrize("speed", [0, -1], ids=["frozen", "backwards"])
    def test_the_clock_of_the_application_orders_nothing(
        self, repository: ChatMemoryRepository, conversation_id: str, speed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A clock that stands still or runs backwards while ids are made changes neither their order nor the list's."""
        start, calls = time.time_ns(), iter(range(10**6))
        monkeypatch.setattr(time, "time_ns", lambda: start + speed * 1_000_000_000 * next(calls))
        monkeypatch.setattr(time, "time", lambda: start / 1e9 + speed * next(calls))
        messages = said(30)
        assert len({message.id for message in messages}) == 30
        for message in messages:
            repository.append(conversation_id, message)
        assert repository.find_by_conversation_id(conversation_id) == messages

    @needs("clock")
    def test_the_clock_of_the_backend_orders_nothing(
        self, harness: Harness, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """A backend's clock that stands still, then jumps back a day, leaves the order as written."""
        messages = said(6)
        for offset, pair in zip((0, 0, -1), (messages[:2], messages[2:4], messages[4:]), strict=True):
            with harness.clock(NOON + dt.timedelta(days=offset)):
                repository.append(conversation_id, pair)
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert repository.find_by_conversation_id(conversation_id, limit=3) == messages[3:]

    def test_ids_order_nothing(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Message ids that fall in every comparison leave the order as written."""
        run = new_id("run")
        messages = [Message.user(f"line {n}", id=f"{run}-{90 - n}") for n in range(30)]
        repository.append(conversation_id, messages[:15])
        repository.append(conversation_id, messages[15:])
        assert repository.find_by_conversation_id(conversation_id) == messages

    def test_an_iterator_is_written_in_its_order(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Lists, tuples and generators are taken alike, and a single message without a list."""
        messages = said(5)
        repository.append(conversation_id, iter(messages[:2]))
        repository.append(conversation_id, tuple(messages[2:4]))
        repository.append(conversation_id, messages[4])
        assert repository.find_by_conversation_id(conversation_id) == messages
        repository.save_all(conversation_id, (message for message in messages[::-1]))
        assert repository.find_by_conversation_id(conversation_id) == messages[::-1]

    @pytest.mark.parametrize("size", [1, 2, 50, 1000])
    def test_a_limit_gives_the_newest_oldest_first(
        self, repository: ChatMemoryRepository, conversation_id: str, size: int
    ) -> None:
        """Limits of 0, 1, N - 1, N, N + 1, ones beyond what engines count, and none."""
        messages = said(size)
        repository.append(conversation_id, messages)
        for limit in (0, 1, size - 1, size, size + 1, 2**31, 2**63, 10**30):
            expected = messages[-limit:] if limit else []
            assert repository.find_by_conversation_id(conversation_id, limit=limit) == expected, limit
        assert repository.find_by_conversation_id(conversation_id, limit=None) == messages

    def test_a_limit_counts_only_what_is_there(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Gaps that a deletion left in the positions take no room in a window."""
        messages = said(10)
        repository.append(conversation_id, messages)
        repository.delete_messages(conversation_id, [message.id for message in messages[4:8]])
        assert repository.find_by_conversation_id(conversation_id, limit=4) == messages[2:4] + messages[8:]

    @pytest.mark.parametrize("limit", [-1, -(10**9)])
    def test_a_negative_limit_is_a_value_error(
        self, repository: ChatMemoryRepository, conversation_id: str, limit: int
    ) -> None:
        """In every call that has a limit; never "all but the last"."""
        repository.append(conversation_id, said(3))
        for call in (repository.find_by_conversation_id, repository.history):
            with pytest.raises(ValueError, match="limit"):
                call(conversation_id, limit=limit)
        with pytest.raises(ValueError, match="limit"):
            repository.list_conversations(limit=limit)

    @pytest.mark.parametrize("limit", [True, False, "3", 2.0, [1], b"1"])
    def test_a_limit_that_is_no_whole_number_is_a_type_error(
        self, repository: ChatMemoryRepository, conversation_id: str, limit: Any
    ) -> None:
        """A bool is no number of messages, and a text from a query string is not guessed at."""
        for call in (repository.find_by_conversation_id, repository.history):
            with pytest.raises(TypeError, match="limit"):
                call(conversation_id, limit=limit)
        with pytest.raises(TypeError, match="limit"):
            repository.list_conversations(limit=limit)

    def test_an_unknown_conversation_has_no_messages(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """An unknown id gives empty answers, and asking does not create it."""
        assert repository.find_by_conversation_id(conversation_id) == []
        assert repository.find_by_conversation_id(conversation_id, limit=5) == []
        assert repository.history(conversation_id).items == []
        assert repository.history(conversation_id).next_cursor is None
        assert repository.count_messages(conversation_id) == 0
        assert repository.get_conversation(conversation_id) is None
        assert repository.delete_messages(conversation_id, ["nobody"]) == 0
        assert conversation_id not in repository.find_conversation_ids()

    def test_a_message_without_parts_is_kept(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """It takes its place in the order like any other; only views may leave it out."""
        messages = [Message.user("before"), Message("assistant"), Message.user("after")]
        repository.append(conversation_id, messages)
        assert repository.find_by_conversation_id(conversation_id) == messages
        assert repository.find_by_conversation_id(conversation_id)[1].text == ""
        assert repository.count_messages(conversation_id) == 3


class TestC01History:
    """Positions and pages of the log."""

    def test_positions_are_whole_numbers_that_grow(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """Within a call, from call to call, and also after a replacement."""
        for call in (repository.append, repository.append, repository.save_all):
            before = [entry.position for entry in whole_history(repository, conversation_id)]
            call(conversation_id, said(5))
            positions = [entry.position for entry in whole_history(repository, conversation_id)]
            assert all(type(position) is int for position in positions)
            assert positions == sorted(set(positions))
            assert positions[-1] > max(before, default=-1)

    @pytest.mark.parametrize("size", [1, 3, 4, 7, 20])
    def test_pages_forward_give_each_message_once(
        self, repository: ChatMemoryRepository, conversation_id: str, size: int
    ) -> None:
        """Without a bound the first page starts at the oldest; next_cursor is None at the end, also where it fits."""
        messages = said(12)
        repository.append(conversation_id, messages)
        first = repository.history(conversation_id, limit=size)
        pages = all_pages(first, lambda cursor: repository.history(conversation_id, after=cursor, limit=size))
        assert [message for page in pages for message in messages_of(page.items)] == messages
        assert len(pages) == -(-12 // size)

    @pytest.mark.parametrize("size", [1, 3, 4, 7, 20])
    def test_pages_backward_give_each_message_once(
        self, repository: ChatMemoryRepository, conversation_id: str, size: int
    ) -> None:
        """`before=p` gives the nearest below p, ascending within the page; next_cursor goes on backwards."""
        messages = said(12)
        repository.append(conversation_id, messages)
        end = whole_history(repository, conversation_id)[-1].position + 1
        first = repository.history(conversation_id, before=end, limit=size)
        pages = all_pages(first, lambda cursor: repository.history(conversation_id, before=cursor, limit=size))
        assert [message for page in pages[::-1] for message in messages_of(page.items)] == messages
        assert len(pages) == -(-12 // size)

    def test_bounds_exclude_themselves(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """`after` and `before` are positions of entries that the page doesn't hold; both give what lies between."""
        messages = said(10)
        repository.append(conversation_id, messages)
        at = [entry.position for entry in whole_history(repository, conversation_id)]
        history = repository.history
        assert messages_of(history(conversation_id, after=at[6]).items) == messages[7:]
        assert messages_of(history(conversation_id, after=at[9]).items) == []
        assert messages_of(history(conversation_id, after=0, limit=2).items) == messages[:2]
        assert messages_of(history(conversation_id, before=at[3]).items) == messages[:3]
        assert messages_of(history(conversation_id, before=at[5], limit=2).items) == messages[3:5]
        assert messages_of(history(conversation_id, before=at[0]).items) == []
        between = history(conversation_id, after=at[2], before=at[8], limit=3)
        assert messages_of(between.items) == messages[3:6]
        rest = history(conversation_id, after=between.next_cursor, before=at[8], limit=3)
        assert messages_of(rest.items) == messages[6:8]
        assert rest.next_cursor is None
        assert messages_of(history(conversation_id, after=at[5], before=at[5]).items) == []

    def test_a_page_stays_where_it_is_while_others_write(
        self, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """What is appended or deleted between two pages neither shifts nor repeats what follows."""
        messages = said(9)
        repository.append(conversation_id, messages)
        page = repository.history(conversation_id, limit=3)
        repository.delete_messages(conversation_id, [messages[0].id, messages[2].id, messages[4].id])
        later = said(2, "later")
        repository.append(conversation_id, later)
        rest = repository.history(conversation_id, after=page.next_cursor)
        assert messages_of(rest.items) == [messages[3], *messages[5:], *later]

    def test_a_limit_of_zero_is_an_empty_page(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Without a cursor, as there is nothing to go on from."""
        repository.append(conversation_id, said(3))
        page = repository.history(conversation_id, limit=0)
        assert (page.items, page.next_cursor) == ([], None)

    def test_the_default_page_has_a_hundred(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """A long conversation is never read whole by accident."""
        repository.append(conversation_id, said(101))
        page = repository.history(conversation_id)
        assert texts(messages_of(page.items)) == [f"line {n:05}" for n in range(100)]
        assert page.next_cursor is not None

    @pytest.mark.parametrize(
        ("bound", "error"),
        [
            (-1, ValueError),
            (2**63, ValueError),
            ("nonsense", ValueError),
            ("", ValueError),
            ("p-1", ValueError),
            (True, TypeError),
            (1.0, TypeError),
            (b"p1", TypeError),
        ],
    )
    def test_a_bound_that_is_no_position_is_refused(
        self, repository: ChatMemoryRepository, conversation_id: str, bound: Any, error: type[Exception]
    ) -> None:
        """Foreign cursors and wrong types never count as "from the start"."""
        for name in ("after", "before"):
            with pytest.raises(error, match=name):
                repository.history(conversation_id, **{name: bound})

    def test_a_huge_limit_is_all_there_is(self, owned: ChatMemoryRepository, conversation_id: str) -> None:
        """In every call that has one, beyond what engines and drivers count."""
        messages = said(3)
        owned.append(conversation_id, messages)
        for limit in (2**31, 2**63 - 1, 2**63, 10**30):
            page = owned.history(conversation_id, limit=limit)
            assert (messages_of(page.items), page.next_cursor) == (messages, None)
            assert len(owned.list_conversations(limit=limit).items) == 1
            assert len(owned.list_conversations(limit=limit, order="updated").items) == 1

    def test_an_entry_tells_what_the_store_knows(self, repository: ChatMemoryRepository, conversation_id: str) -> None:
        """Without ttl and estimator there is no expiry and no count."""
        repository.append(conversation_id, said(1))
        (entry,) = repository.history(conversation_id).items
        assert (entry.expires_at, entry.token_count) == (None, None)
