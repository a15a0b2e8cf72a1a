"""Which Python values come back equal from JSON, and checked copies of them. Knows nothing of messages or storage."""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

from chatkeep.errors import InvalidMessageError, UnstorableValueError

UNSAFE_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Unicode categories Cc and Cs, which no id may hold."""

MAX_DEPTH = 200
"""Levels of lists and objects inside one value; deeper ones overflow JSON parsers of other languages."""
MAX_INT_DIGITS = 4300
"""Python itself refuses to parse longer integers (sys.get_int_max_str_digits)."""
_MAX_INT = 10**MAX_INT_DIGITS
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def require_str(value: object, path: str, *, optional: bool = False) -> None:
    """Only a plain `str`: a subclass such as a StrEnum member would come back as something else."""
    if type(value) is str:
        check_text(value, path)
        return
    if optional and value is None:
        return
    wanted = "str or None" if optional else "str"
    raise UnstorableValueError(f"{path}: expected {wanted}, got {type(value).__name__}")


def check_text(value: str, path: Path) -> None:
    """Any str but one: two surrogates that stand as a pair are the JSON of another character and come back as that."""
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        if _SURROGATE_PAIR.search(value):
            raise InvalidMessageError(
                f"{_shown(path)}: a high surrogate before a low one would come back as the one character they encode"
            ) from None


Path: TypeAlias = "str | tuple[Path, str | int]"
"""Where a value is: a name, or the path of its container and its key or index. Text is made of it for errors only,
for the keys of a large value may be long and many."""


def copied_object(value: object, path: str, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """A checked deep copy of a JSON object."""
    if type(value) is not dict:
        raise UnstorableValueError(f"{path}: expected dict, got {type(value).__name__}")
    if not value:  # nearly all
        return {}
    try:
        return _copy_dict(value, path, depth)
    except RecursionError:
        raise _too_deep(path) from None


def copied_json(value: Any, path: str) -> Any:
    """A checked deep copy of any JSON value: None, bool, int, float, str, list, dict with str keys.

    Raises UnstorableValueError (a TypeError) for anything else and InvalidMessageError (a ValueError) for NaN,
    infinities, integers beyond 4,300 digits, surrogate pairs and more than 200 levels. Both name the path.
    """
    try:
        return _copy(value, path, MAX_DEPTH)
    except RecursionError:
        raise _too_deep(path) from None


def _copy(value: Any, path: Path, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        if not value.isascii():
            check_text(value, path)
        return value
    if value is None or kind is bool:
        return value
    if kind is int:
        if not -_MAX_INT < value < _MAX_INT:
            raise InvalidMessageError(f"{_shown(path)}: integers of more than {MAX_INT_DIGITS} digits can't be stored")
        return value
    if kind is float:
        if not math.isfinite(value):
            raise InvalidMessageError(f"{_shown(path)}: {value} is not JSON; NaN and infinities can't be stored")
        return value
    if kind is dict:
        return _copy_dict(value, path, depth)
    if kind is list:
        _check_depth(path, depth)
        return [_copy(item, (path, index), depth - 1) for index, item in enumerate(value)]
    raise UnstorableValueError(
        f"{_shown(path)}: {kind.__name__} would not come back equal; use None, bool, int, float, str, list or dict"
    )


def _copy_dict(value: dict[Any, Any], path: Path, depth: int) -> dict[str, Any]:
    _check_depth(path, depth)
    copy: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise UnstorableValueError(f"{_shown(path)}: key {key!r:.60} is {type(key).__name__}; JSON keys are str")
        check_text(key, path)
        copy[key] = _copy(item, (path, key), depth - 1)
    return copy


def _check_depth(path: Path, depth: int) -> None:
    if depth == 0:
        raise InvalidMessageError(f"{_shown(path)[:60]}…: more than {MAX_DEPTH} levels of lists and objects")


def _shown(path: Path) -> str:
    """metadata.key[0], with long keys cut."""
    pieces: list[str] = []
    while not isinstance(path, str):
        path, key = path
        pieces.append(f"[{key}]" if isinstance(key, int) else f".{key if len(key) <= 60 else key[:59] + '…'}")
    return path + "".join(reversed(pieces))


def _too_deep(path: str) -> InvalidMessageError:
    return InvalidMessageError(f"{path}: nested deeper than the stack that is left here allows")
