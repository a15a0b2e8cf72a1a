"""What must hold when the disk is full: one text for the servers and, in a process with a small disk, for SQLite."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chatkeep import Message, Outcome, StorageCapacityError, open_async_repository, open_repository
from chatkeep.conformance.blocking import blocking, wait_for
from tests.faults.invariants import check_usable

ROOM = 2
"""MB that are left on a disk that is filled up."""


def check_full_disk(
    repository: Any, take: Callable[[], object], free: Callable[[], object], *, size: int = 48 * 1024
) -> None:
    """`take` leaves little room on the disk that holds the messages, `free` gives it back; messages have this size."""
    conversation, other = uuid.uuid4().hex, uuid.uuid4().hex
    acknowledged: list[str] = []
    # More than there is room for: what was deleted before leaves some inside the engine's files.
    messages = (_incompressible(size) for _ in range(8 * ROOM * 1024 * 1024 // size))
    repository.append(other, [Message.user("old"), Message.assistant("older")])
    take()
    with pytest.raises(StorageCapacityError, match="refused for size or space") as caught:
        for message in messages:
            repository.append(conversation, message)
            acknowledged.append(message.text)
    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert message.text[:100] not in str(caught.value)

    # What is stored can be read, and a replacement that finds no room leaves the old list.
    assert _texts(repository, conversation) == acknowledged
    with pytest.raises(StorageCapacityError) as caught:
        repository.save_all(other, [_incompressible(size) for _ in range(2 * ROOM * 1024 * 1024 // size)])
    assert caught.value.outcome is Outcome.NOT_APPLIED
    assert _texts(repository, other) == ["old", "older"]

    free()
    repository.append(conversation, message)
    repository.append(conversation, Message.user("after"))
    assert _texts(repository, conversation) == [*acknowledged, message.text, "after"]
    assert repository.count_messages(conversation) == len(acknowledged) + 2
    repository.save_all(other, [Message.user("new")])
    assert _texts(repository, other) == ["new"]
    check_usable(repository)
    assert repository.delete_by_conversation_id(conversation) is True


def _incompressible(size: int) -> Message:
    """By the engines, that is: to half of it at most."""
    return Message.user(os.urandom(size // 2).hex())


def _texts(repository: Any, conversation: str) -> list[str]:
    return [message.text for message in repository.find_by_conversation_id(conversation)]


def main(folder: Path) -> None:
    """A SQLite file in a folder that is a small disk."""
    filler = folder / "filler"

    def take() -> None:
        disk = os.statvfs(folder)
        filler.write_bytes(bytes(disk.f_bavail * disk.f_frsize - ROOM * 1024 * 1024))

    url = f"sqlite:///{folder / 'chat.db'}"
    with open_repository(url) as repository:
        check_full_disk(repository, take, filler.unlink)
    with blocking(wait_for(open_async_repository(url))) as repository:
        check_full_disk(repository, take, filler.unlink)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
