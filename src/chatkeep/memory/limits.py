"""Checks of what a memory is given: limits, messages, choices. Clear errors before any I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from chatkeep.message import Message

Limit: TypeAlias = int | Callable[[str], int | Awaitable[int]]
"""A number, or a function of the conversation id that is asked each time; in the async form also an async one."""


def check_limit(value: object, name: str) -> int:
    """A whole number of 1 or more."""
    if type(value) is not int:
        raise TypeError(f"{name}: expected int, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name}: expected 1 or more, got {value}")
    return value


def check_limit_given(value: Any, name: str) -> Limit:
    """A limit, or a function that gives one."""
    if callable(value):
        given: Limit = value
        return given
    return check_limit(value, name)


def check_choice(value: object, name: str, *choices: str) -> str:
    """One of the choices."""
    if value not in choices:
        raise ValueError(f"{name}: expected {' or '.join(repr(choice) for choice in choices)}, got {value!r}")
    return str(value)


def check_flag(value: object, name: str) -> bool:
    """True or False."""
    if type(value) is not bool:
        raise TypeError(f"{name}: expected bool, got {type(value).__name__}")
    return value


def named(value: object) -> str:
    """What was given, for an error: the class itself, or whose instance it is."""
    return value.__name__ if isinstance(value, type) else type(value).__name__


def check_messages(messages: Iterable[Message], name: str) -> list[Message]:
    """Messages and nothing else, in a list of our own."""
    if isinstance(messages, (str, bytes, dict, Message)) or not isinstance(messages, Iterable):
        raise TypeError(
            f'{name}: expected an iterable of Message, got {type(messages).__name__}; did you mean [Message.user("…")]?'
        )
    owned = list(messages)
    for index, message in enumerate(owned):
        if type(message) is not Message:
            hint = "; give them one by one: add(id, *messages)" if isinstance(message, (list, tuple)) else ""
            raise TypeError(f"{name}[{index}]: expected a Message, got {type(message).__name__}{hint}")
    return owned
