"""Repositories that are broken on purpose, for test_soak.py: what they wrap is right.

Each names the promises that may be the first one found broken; most faults show in several places, and chance decides.
"""

import random
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from benchmarks.soak.violation import Promise
from chatkeep import (
    ChatMemoryRepository,
    ConcurrentChangeError,
    Message,
    Outcome,
    StorageConnectionError,
    StorageTimeoutError,
)
from chatkeep.conversation import Conversation, HistoryEntry, Page

SELDOM = 0.05

MUTANTS: dict[type["Wrapper"], set[Promise]] = {}


class Wrapper:
    """Passes every call on."""

    def __init__(self, repository: ChatMemoryRepository) -> None:
        self.inner = repository
        self.chance = random.Random(8)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __enter__(self) -> "Wrapper":
        return self

    def __exit__(self, *error: object) -> None:
        self.inner.close()

    def seldom(self) -> bool:
        return self.chance.random() < SELDOM


def breaks(*promises: Promise) -> Callable[[type[Wrapper]], type[Wrapper]]:
    """Registers a mutant with the promises of which the first one found broken must be one."""

    def register(mutant: type[Wrapper]) -> type[Wrapper]:
        MUTANTS[mutant] = set(promises)
        return mutant

    return register


def ids(messages: Iterable[Message]) -> list[str]:
    return [message.id for message in messages]


@breaks(Promise.KEPT, Promise.OWN, Promise.DIRECTORY, Promise.ERRORS)
class LosesAppends(Wrapper):
    def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
        version = self.inner.append(conversation, messages, **options)
        if self.seldom():
            self.inner.delete_messages(conversation, ids(messages))
        return version


@breaks(Promise.TOGETHER, Promise.OWN, Promise.REPLACED)
class ShowsSomeTwice(Wrapper):
    def find_by_conversation_id(self, conversation: str, **options: Any) -> list[Message]:
        found = self.inner.find_by_conversation_id(conversation, **options)
        return found[-1:] + found[1:] if self.seldom() else found


@breaks(Promise.TOGETHER, Promise.OWN)
class Reorders(Wrapper):
    def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
        return self.inner.append(conversation, messages[::-1] if self.seldom() else messages, **options)


@breaks(Promise.TOGETHER)
class Splits(Wrapper):
    def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
        version = self.inner.append(conversation, messages[:1], **options)
        if len(messages) > 1:
            time.sleep(0.0005)
            version = self.inner.append(conversation, messages[1:])
        return version


@breaks(Promise.REPLACED, Promise.OWN, Promise.DIRECTORY)
class MixesReplacements(Wrapper):
    def save_all(self, conversation: str, messages: list[Message], **options: Any) -> int:
        rest = self.inner.find_by_conversation_id(conversation)[:1] if self.seldom() else []
        return self.inner.save_all(conversation, rest + messages, **options)


@breaks(Promise.REPLACED)
class ReplacesInTwoSteps(Wrapper):
    def save_all(self, conversation: str, messages: list[Message], **options: Any) -> int:
        version = self.inner.save_all(conversation, [], **options)
        if messages:
            time.sleep(0.0005)
            version = self.inner.append(conversation, messages)
        return version


@breaks(Promise.GONE, Promise.OWN, Promise.KEPT, Promise.DIRECTORY)
class Resurrects(Wrapper):
    def __init__(self, repository: ChatMemoryRepository) -> None:
        super().__init__(repository)
        self.dead: dict[str, list[Message]] = {}

    def delete_by_conversation_id(self, conversation: str) -> bool:
        self.dead[conversation] = self.inner.find_by_conversation_id(conversation)[-3:]
        return self.inner.delete_by_conversation_id(conversation)

    def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
        return self.inner.append(conversation, self.dead.pop(conversation, []) + messages, **options)


@breaks(Promise.GONE, Promise.OWN, Promise.DIRECTORY, Promise.ERRORS)
class KeepsDeleted(Wrapper):
    def delete_by_conversation_id(self, conversation: str) -> bool:
        return self.chance.random() < 0.3 or self.inner.delete_by_conversation_id(conversation)


@breaks(Promise.GROWING, Promise.OWN, Promise.KEPT, Promise.DIRECTORY)
class GoesBackInVersion(Wrapper):
    def __init__(self, repository: ChatMemoryRepository) -> None:
        super().__init__(repository)
        self.seen: dict[str, Conversation] = {}

    def get_conversation(self, conversation: str) -> Conversation | None:
        entry = self.inner.get_conversation(conversation)
        earlier = self.seen.get(conversation)
        if entry is not None:
            self.seen[conversation] = entry
        return earlier if earlier is not None and self.seldom() else entry


@breaks(Promise.GROWING)
class UsesPositionsAgain(Wrapper):
    def history(self, conversation: str, **options: Any) -> Page[HistoryEntry]:
        page = self.inner.history(conversation, **options)
        if not conversation.startswith(("list", "wiped")):
            return page
        return Page([msgspec.structs.replace(entry, position=n) for n, entry in enumerate(page.items, 1)])


@breaks(Promise.OUTCOME, Promise.OWN, Promise.KEPT, Promise.DIRECTORY, Promise.ERRORS)
class AppliesWhatItRefuses(Wrapper):
    def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
        version = self.inner.append(conversation, messages, **options)
        if self.seldom():
            raise StorageConnectionError("refused", outcome=Outcome.NOT_APPLIED)
        return version


@breaks(Promise.TOGETHER, Promise.OWN, Promise.DIRECTORY, Promise.OUTCOME)
class TearsUnknownOutcomes(Wrapper):
    def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
        if len(messages) < 2 or not self.seldom():
            return self.inner.append(conversation, messages, **options)
        self.inner.append(conversation, messages[:1], **options)
        raise StorageTimeoutError("who knows", outcome=Outcome.UNKNOWN)


@breaks(Promise.ONE_WINS)
class LetsTwoWin(Wrapper):
    def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
        return self.inner.append(conversation, messages)


@breaks(Promise.ONE_WINS)
class LetsTwoReplace(Wrapper):
    def save_all(self, conversation: str, messages: list[Message], **options: Any) -> int:
        time.sleep(0.002)
        return self.inner.save_all(conversation, messages)


@breaks(Promise.ERRORS, Promise.GROWING)
class LetsNobodyWin(Wrapper):
    def append(self, conversation: str, messages: list[Message], **options: Any) -> int:
        if (expected := options.get("expected_version")) is not None and self.seldom():
            raise ConcurrentChangeError(conversation, expected=expected, actual=expected + 1)
        return self.inner.append(conversation, messages, **options)


@breaks(Promise.KEPT, Promise.OWN, Promise.REPLACED, Promise.GONE)
class ReadsOldViews(Wrapper):
    def __init__(self, repository: ChatMemoryRepository) -> None:
        super().__init__(repository)
        self.views: dict[str, list[Message]] = {}

    def find_by_conversation_id(self, conversation: str, **options: Any) -> list[Message]:
        key = f"{conversation} {options}"
        if key not in self.views or not self.seldom():
            self.views[key] = self.inner.find_by_conversation_id(conversation, **options)
        return self.views[key]


@breaks(Promise.LOSSLESS)
class LosesMetadata(Wrapper):
    def history(self, conversation: str, **options: Any) -> Page[HistoryEntry]:
        page = self.inner.history(conversation, **options)
        bare = [
            msgspec.structs.replace(entry, message=msgspec.structs.replace(entry.message, metadata={}))
            for entry in page.items
        ]
        return Page(bare, page.next_cursor)


@breaks(Promise.KEPT, Promise.OWN, Promise.TOGETHER, Promise.DIRECTORY, Promise.ERRORS)
class DeletesNeighbours(Wrapper):
    def delete_messages(self, conversation: str, message_ids: list[str]) -> int:
        newest = self.inner.find_by_conversation_id(conversation, limit=1)
        deleted = self.inner.delete_messages(conversation, message_ids)
        self.inner.delete_messages(conversation, ids(newest))
        return deleted


@breaks(Promise.GONE, Promise.OWN, Promise.TOGETHER, Promise.KEPT, Promise.DIRECTORY)
class DeletesTooLittle(Wrapper):
    def delete_messages(self, conversation: str, message_ids: list[str]) -> int:
        return self.inner.delete_messages(conversation, message_ids[1:]) + (len(message_ids) > 1)


@breaks(Promise.DIRECTORY)
class SkipsAtTheEndOfAPage(Wrapper):
    def list_conversations(self, **options: Any) -> Page[Conversation]:
        page = self.inner.list_conversations(**options)
        return Page(page.items[:-1], page.next_cursor)


@breaks(Promise.GONE)
class ListsTheDead(Wrapper):
    def __init__(self, repository: ChatMemoryRepository) -> None:
        super().__init__(repository)
        self.ever: set[str] = set()

    def find_conversation_ids(self) -> list[str]:
        self.ever.update(self.inner.find_conversation_ids())
        return sorted(self.ever)


@breaks(Promise.ERRORS)
class HasABug(Wrapper):
    def find_by_conversation_id(self, conversation: str, **options: Any) -> list[Message]:
        if self.seldom():
            raise KeyError("position")
        return self.inner.find_by_conversation_id(conversation, **options)


@breaks(Promise.POOL)
class KeepsConnections(Wrapper):
    def count_messages(self, conversation: str) -> int:
        if conversation == "nobody":
            raise StorageTimeoutError("all connections of the pool were busy")
        return self.inner.count_messages(conversation)


class FailsHonestly(Wrapper):
    """Not broken: refuses without a trace, and with an unknown outcome writes all or nothing."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if name not in ("append", "save_all", "delete_by_conversation_id", "delete_messages"):
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            fate = self.chance.random()
            if fate < 0.03:
                raise StorageConnectionError("refused", outcome=Outcome.NOT_APPLIED)
            if 0.06 < fate < 0.09:
                raise StorageTimeoutError("who knows", outcome=Outcome.UNKNOWN)
            result = method(*arguments, **options)
            if 0.03 < fate < 0.06:
                raise StorageTimeoutError("who knows", outcome=Outcome.UNKNOWN)
            return result

        return call
