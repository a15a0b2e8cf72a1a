"""Takes JSON objects apart: each access checks the type and names the path. What isn't taken is left for the notes."""

from __future__ import annotations

from typing import Any, TypeAlias

from chatkeep import values
from chatkeep.errors import InvalidMessageError

Json: TypeAlias = dict[str, Any]

MISSING = "missing"
"""In a note, for a field that can't hold this text: the field wasn't there."""


def given(**fields: Any) -> Json:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def message_at(value: Any, path: str) -> Json:
    """A checked deep copy of the object of a message."""
    if type(value) is not dict:
        raise InvalidMessageError(
            f"{path}: expected a dict, got {json_type(value)}; "
            "for an object of the SDK give its .model_dump(exclude_unset=True)"
        )
    return values.copied_object(value, path)


def object_at(value: Any, path: str) -> Json:
    """A checked deep copy of an object."""
    if type(value) is not dict:
        raise InvalidMessageError(f"{path}: expected an object, got {json_type(value)}")
    return values.copied_object(value, path)


def list_of(value: Any, path: str, wanted: str = "a list of objects") -> list[Any]:
    """A list, or anything else that gives one thing after the other; not one text or object."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__"):
        raise InvalidMessageError(f"{path}: expected {wanted}, got {json_type(value)}")
    return list(value)


def take(data: Json, key: str, kind: type, path: str) -> Any:
    """The value of a field that must be there, out of the object."""
    if key not in data:
        raise InvalidMessageError(f"{path}.{key}: missing")
    value = data.pop(key)
    if type(value) is not kind:
        raise InvalidMessageError(f"{path}.{key}: expected {kind.__name__}, got {json_type(value)}")
    return value


def take_or_leave(data: Json, key: str, kind: type, path: str) -> Any:
    """The value of an optional field. A null stays where it is and so becomes a note: null is not missing."""
    return None if data.get(key) is None else take(data, key, kind, path)


def take_or_note(data: Json, key: str, kind: type, path: str) -> Any:
    """As `take_or_leave`, for a field that is always written: the note tells that it was missing."""
    if key not in data:
        data[key] = MISSING
        return None
    return take_or_leave(data, key, kind, path)


def put(made: Json, noted: Json, key: str, value: Any, empty: Any) -> None:
    """Write a field that `take_or_note` read: an empty one may be noted as null or as missing."""
    if value == empty and key in noted and noted[key] in (None, MISSING):
        if noted.pop(key) is None:
            made[key] = None
    else:
        made[key] = value


def take_filled_list(data: Json, key: str, path: str) -> list[Any]:
    """The elements of an optional list. An empty one and a null stay where they are."""
    check_optional(data, key, list, path)
    return data.pop(key) if data.get(key) else []


def check_optional(data: Json, key: str, kind: type, path: str) -> None:
    """The type of a field that stays where it is."""
    value = data.get(key)
    if value is not None and type(value) is not kind:
        raise InvalidMessageError(f"{path}.{key}: expected {kind.__name__} or null, got {json_type(value)}")


def json_type(value: Any) -> str:
    """The name of a value's type as an error tells it."""
    return "null" if value is None else type(value).__name__
