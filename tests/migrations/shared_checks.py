"""What must hold on every server alike, whose accounts and namespaces are made in ways of their own."""

from __future__ import annotations

from chatkeep import Message, open_async_repository, open_repository
from chatkeep.migrations.runner import migrate
from tests.migrations.places import Place


def check_that_it_works(account: str) -> None:
    """All that an application does, where the tables are there: no operation needs a right beyond the documented."""
    with open_repository(account, schema="validate") as repository:
        repository.append("a", [Message.user("one"), Message.assistant("two")])
        repository.save_all("b", [Message.user("three")])
        assert [message.text for message in repository.find_by_conversation_id("a")] == ["one", "two"]
        assert repository.find_conversation_ids() == ["a", "b"]
        assert repository.delete_by_conversation_id("b")
        repository.purge_expired()
    with open_repository(account) as repository:
        assert repository.count_messages("a") == 2
    with open_repository(account, schema="migrate") as repository:  # nothing to do, so no right is needed
        assert repository.count_messages("a") == 2


async def check_that_it_works_asynchronously(account: str) -> None:
    async with await open_async_repository(account, schema="validate") as repository:
        await repository.append("a", [Message.user("one")])
        assert [message.text for message in await repository.find_by_conversation_id("a")] == ["one"]


def check_that_they_are_two(place: Place, other: Place) -> None:
    """Two namespaces of one server have a lock and a history each."""
    with place.target() as one, other.target() as two:
        with one.lock(5), two.lock(0.2):
            pass
        migrate(one)
        assert two.history() is None
        migrate(two)
