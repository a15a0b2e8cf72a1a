"""Token counting: the protocol of estimators, and one that needs nothing."""

from __future__ import annotations

import re
from typing import Protocol, runtime_checkable

from chatkeep.memory.limits import named
from chatkeep.message import Message


@runtime_checkable
class TokenCountEstimator(Protocol):
    """Counts what a message takes of a model's context.

    `name` and `version` together are the key under which counts are stored with the messages (up to 64 printable ASCII
    characters with the slash between them): change one of them whenever the counts change, and every message is counted
    anew. `count_message` must not depend on other messages; it counts everything that is sent for the message:
    its text, name, calls with names and arguments, results, media, and what the provider adds around each message.

    An estimator may also have `tokens_per_request: int`, what a request takes beside its messages; without it, 0.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def count_message(self, message: Message) -> int:
        """Tokens of one message, 0 or more."""
        ...


_KEY = re.compile("(?=.{3,64}$)[!-~]+/[!-~]+")


def estimator_key(estimator: TokenCountEstimator) -> str:
    """What its counts are stored under."""
    return f"{estimator.name}/{estimator.version}"


def check_estimator(estimator: TokenCountEstimator) -> TokenCountEstimator:
    """An estimator whose key can be stored."""
    if isinstance(estimator, type) or not isinstance(estimator, TokenCountEstimator):
        raise TypeError(f"estimator: expected an object with name, version and count_message, got {named(estimator)}")
    key = estimator_key(estimator)
    if not _KEY.fullmatch(key):
        raise ValueError(f"estimator: name/version {key!r} must be up to 64 printable ASCII characters without spaces")
    overhead = getattr(estimator, "tokens_per_request", 0)
    if type(overhead) is not int or overhead < 0:
        raise ValueError(f"estimator: tokens_per_request must be an int, 0 or more, got {overhead!r}")
    return estimator


def checked_count(estimator: TokenCountEstimator, message: Message) -> int:
    """The count of a message, or an error where it is none."""
    count = estimator.count_message(message)
    if type(count) is not int:
        raise TypeError(f"{estimator_key(estimator)}: count_message must return an int, got {type(count).__name__}")
    if not 0 <= count < 2**31:
        raise ValueError(f"{estimator_key(estimator)}: count_message must return 0 to 2^31 - 1, got {count}")
    return count
