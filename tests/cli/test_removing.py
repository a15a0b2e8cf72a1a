"""delete asks first, purge says what it did."""

import datetime as dt
import time

import pytest

from chatkeep import ChatMemoryRepository, Message

from .conftest import Run


def test_delete_without_a_terminal_needs_yes(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("t", Message.user("x"))
    refused = run("delete", "t", stdin="y\n")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert repository.count_messages("t") == 1
    done = run("delete", "t", "--yes")
    assert done.code == 0
    assert "deleted conversation 't' with 1 message" in done.err
    assert repository.get_conversation("t") is None


def test_delete_takes_only_what_was_named(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("t", Message.user("x"))
    repository.append("t2", Message.user("x"))
    run("delete", "t", "--yes")
    assert repository.find_conversation_ids() == ["t2"]


def test_purge_wants_to_know_what(run: Run, repository: ChatMemoryRepository) -> None:
    assert run("purge").code == 2
    for bad in ("soon", "-1d", "", "3 years"):
        refused = run("purge", "--idle", bad)
        assert refused.code == 2
        assert "--idle" in refused.err


def test_purge_of_expired_messages_counts_first_and_deletes_then(run: Run, repository: ChatMemoryRepository) -> None:
    repository.append("t", [Message.user("stays")])
    repository.append("t", [Message.user(str(number)) for number in range(3)], ttl=dt.timedelta(milliseconds=50))
    repository.append("gone", Message.user("x"), ttl=dt.timedelta(milliseconds=50))
    time.sleep(0.1)
    dry = run("purge", "--expired", "--dry-run", "--batch-size", "2")
    assert dry.out == "expired: would delete 4 messages, and with them 1 conversation as a whole\n"
    assert run("purge", "--expired", "--batch-size", "2").out == dry.out.replace("would delete", "deleted")
    assert "deleted 0 messages, and with them 0 conversations" in run("purge", "--expired").out
    assert repository.find_conversation_ids() == ["t"]


@pytest.mark.parametrize(("idle", "left"), [("1d", ["t"]), ("P1D", ["t"]), ("50ms", [])])
def test_purge_of_idle_conversations_goes_by_their_last_change(
    run: Run, repository: ChatMemoryRepository, idle: str, left: list[str]
) -> None:
    repository.append("t", Message.user("x"))
    time.sleep(0.1)
    dry = run("purge", "--idle", idle, "--dry-run")
    assert dry.code == 0
    assert repository.find_conversation_ids() == ["t"]
    assert run("purge", "--idle", idle).code == 0
    assert repository.find_conversation_ids() == left


def test_both_purges_at_once_report_both(run: Run, repository: ChatMemoryRepository) -> None:
    assert len(run("purge", "--expired", "--idle", "90d").lines) == 2
