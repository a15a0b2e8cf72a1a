"""Every error chatkeep raises, and nothing else.

    ChatkeepError
    ├── ConfigurationError              a URL, option, file or environment variable is wrong
    ├── InvalidMessageError             ValueError: the message breaks a rule of storable messages
    │   └── MessageTooLargeError        the encoded message is over the limit
    ├── UnstorableValueError            TypeError: a value would not come back equal
    ├── InvalidConversationIdError      ValueError
    ├── InvalidOwnerError               ValueError
    ├── ConversationNotFoundError       LookupError
    ├── ConcurrentChangeError           `expected_version` is stale
    ├── InvalidAnswerError              TypeError: a model gave what is no answer
    ├── TurnNotStoredError              a model answered, and the turn could not be stored; holds it
    ├── EmbeddingError                  ValueError: an embedding function gave what can't be used
    ├── WindowOverflowError             a memory's least view is over its limit, with on_overflow="error"
    ├── RepositoryClosedError           used after close()
    ├── StoredDataError                 a stored row can't be read
    ├── UnsupportedOperationError       the backend declares that it can't do this
    └── StorageError                    the engine failed; `outcome` says whether the write may have landed
        ├── StorageConnectionError      no connection, or it broke
        ├── StorageAccessError          the engine refuses the account, the database or the file
        ├── StorageTimeoutError         a lock, statement or pool time-out
        ├── ContentionError             deadlock, serialisation failure, locked database
        ├── StorageCapacityError        the engine refuses for size or space
        └── SchemaError                 tables missing, too old, too new, or changed by hand

Texts say what was tried, on which backend, and what to do next. They never hold message content or a password.
"""

from __future__ import annotations

import enum
from typing import Any


class Outcome(enum.Enum):
    """Answers the one question a retry needs: may the write have landed?"""

    NOT_APPLIED = "not applied"
    """Nothing was written: repeating the call is safe."""
    UNKNOWN = "unknown"
    """The reply was lost: the write happened or did not. Repeating an append with the same message ids is safe."""


class ChatkeepError(Exception):
    """The root: `except ChatkeepError` catches everything the package raises on purpose.

    Errors can be pickled, so that they leave a worker process as what they are.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[ChatkeepError], args: tuple[Any, ...], state: dict[str, Any]) -> ChatkeepError:
    # Past the constructors, which make texts out of their arguments.
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigurationError(ChatkeepError):
    """A URL, an option, a configuration file or an environment variable is wrong; the text lists what is known."""


class InvalidMessageError(ChatkeepError, ValueError):
    """A message breaks a rule of storable messages. Raised before any I/O, with the path of the offending value."""


class MessageTooLargeError(InvalidMessageError):
    """The encoded message is over `capabilities.max_message_bytes`. Raised before any I/O.

    `size` and `limit` are in bytes of the encoded message.
    """

    def __init__(self, message: str, *, size: int, limit: int) -> None:
        super().__init__(message)
        self.size = size
        self.limit = limit


class UnstorableValueError(ChatkeepError, TypeError):
    """A value would not come back equal from JSON (a tuple, a datetime, a key that is no `str`); names its path."""


class InvalidConversationIdError(ChatkeepError, ValueError):
    """A conversation id is not a `str` of 1 to 255 storable characters."""


class InvalidOwnerError(ChatkeepError, ValueError):
    """An owner is not a `str` of 0 to 255 storable characters."""


class ConversationNotFoundError(ChatkeepError, LookupError):
    """The call needs a conversation that exists, and this one does not."""


class ConcurrentChangeError(ChatkeepError):
    """The conversation changed since the version the caller had seen. Nothing was written.

    `expected` and `actual` are versions; `actual` is 0 where the conversation does not exist.
    """

    def __init__(self, conversation_id: str, *, expected: int, actual: int) -> None:
        what = f"has version {actual}" if actual else "does not exist (version 0)"
        super().__init__(
            f"conversation {conversation_id!r} was expected at version {expected} but {what}; "
            f"read it again and decide anew"
        )
        self.conversation_id = conversation_id
        self.expected = expected
        self.actual = actual


class WindowOverflowError(ChatkeepError):
    """Even the least view of a conversation (system, newest user message, last group) is over the memory's limit.

    Raised by `get` of a memory with `on_overflow="error"`. `size` and `limit` are in `unit`: "messages" or "tokens".
    """

    def __init__(self, conversation_id: str, *, size: int, limit: int, unit: str) -> None:
        super().__init__(
            f"conversation {conversation_id!r}: the least view takes {size:,} {unit}, the limit is {limit:,}; "
            f'raise the limit, shorten the newest messages, or send it all the same with on_overflow="keep"'
        )
        self.conversation_id = conversation_id
        self.size = size
        self.limit = limit
        self.unit = unit


class InvalidAnswerError(ChatkeepError, TypeError):
    """A model that advisors stand around gave what is no Message, text or chunk, or nothing at all."""


class TurnNotStoredError(ChatkeepError):
    """The model answered, and then the turn could not be stored; what failed is the `__cause__`.

    `messages` is the whole turn. `memory.add(conversation_id, *error.messages)` stores it, also where it may have been
    stored already: the same message ids are stored once.
    """

    def __init__(self, conversation_id: str, messages: tuple[Any, ...]) -> None:
        super().__init__(
            f"the model answered, but the turn could not be stored in conversation {conversation_id!r}; "
            f"add this error's messages to the memory again"
        )
        self.conversation_id = conversation_id
        self.messages = messages


class EmbeddingError(ChatkeepError, ValueError):
    """An embedding function gave another number of vectors than texts, another dimension than before, or no numbers."""


class RepositoryClosedError(ChatkeepError):
    """The repository was used after `close()`."""


class StoredDataError(ChatkeepError):
    """A stored row can't be read: broken JSON, an unknown part, a future format version.

    `conversation_id` and `position` name the row. `open_repository(on_unreadable="keep")` returns such a row as a
    message with one `Opaque` part instead.
    """

    def __init__(self, reason: str, *, conversation_id: str | None = None, position: int | None = None) -> None:
        where = "" if conversation_id is None else f"conversation {conversation_id!r}"
        if position is not None:
            where += f", position {position}"
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.conversation_id = conversation_id
        self.position = position


class UnsupportedOperationError(ChatkeepError):
    """The backend declares in its capabilities that it can't do this, so it is refused and never approximated."""


class StorageError(ChatkeepError):
    """The engine failed. The driver's own error is the `__cause__`.

    `outcome` tells whether the write may have landed; `backend` names the engine.
    """

    def __init__(self, message: str, *, backend: str = "", outcome: Outcome = Outcome.NOT_APPLIED) -> None:
        super().__init__(message)
        self.backend = backend
        self.outcome = outcome


class StorageConnectionError(StorageError):
    """No connection could be opened, or an open one broke."""


class StorageAccessError(StorageError):
    """The engine refuses: a wrong password, an unknown account or database, a file that can't be opened or written.

    Not retried: asking again changes nothing, and may lock the account.
    """


class StorageTimeoutError(StorageError):
    """A connection, statement, lock or pool time-out ran out."""


class ContentionError(StorageError):
    """Other writers won: a deadlock, a serialisation failure or a locked database, after all retries."""


class StorageCapacityError(StorageError):
    """The engine refused for size or space: disk full, a packet or row limit, a conversation at its last position."""


class SchemaError(StorageError):
    """The tables are missing, older or newer than this package, or were changed; the text names the next command."""
