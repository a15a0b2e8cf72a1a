"""Steps that writers share: lists of parts with their paths, runs of results, opaque parts, call arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeAlias

from chatkeep import values
from chatkeep.errors import InvalidMessageError, UnstorableValueError
from chatkeep.formats.shared.losses import Losses
from chatkeep.formats.shared.objects import Json
from chatkeep.message import Message, Opaque, Part, ToolResult

Placed: TypeAlias = tuple[str, Part]
"""A part with its path."""


def placed(parts: Iterable[Part], path: str) -> list[Placed]:
    """The parts with their paths."""
    return [(f"{path}[{index}]", part) for index, part in enumerate(parts)]


def runs(parts: Sequence[Placed]) -> list[list[Placed]]:
    """Each result alone, and what stands between them together; one empty run where there is nothing."""
    found: list[list[Placed]] = []
    for item in parts:
        if isinstance(item[1], ToolResult) or not found or is_result(found[-1]):
            found.append([item])
        else:
            found[-1].append(item)
    return found or [[]]


def is_result(run: Sequence[Placed]) -> bool:
    """Whether a run is one result."""
    return bool(run) and isinstance(run[0][1], ToolResult)


def written(group: Iterable[Placed], write: Callable[[Part, str, Losses], Json | None], losses: Losses) -> list[Json]:
    """The objects of some parts, without those that were left out."""
    made = (write(part, path, losses) for path, part in group)
    return [one for one in made if one is not None]


def write_opaque(part: Opaque, path: str, losses: Losses, read: Callable[[Any, str], Part | None]) -> Json | None:
    """The object as it came. One that reading would not keep whole is refused: it would come back as another part."""
    try:
        reason = (
            "" if read(part.data, f"{path}.data") == part else f"{losses.kept.label} has a part of its own for this"
        )
    except (InvalidMessageError, UnstorableValueError) as exc:
        reason = str(exc)
    if reason:
        losses.refuse(path, reason)
        return None
    whole: Json = Opaque(part.type, part.data).data  # a copy
    return whole


def named(part: Part) -> str:
    """A part as errors name it."""
    return f"Opaque {part.type!r}" if isinstance(part, Opaque) else type(part).__name__


def check_readable(message: Message, made: Any, path: str, losses: Losses, read: Callable[[Any], object]) -> None:
    """Notes are added as they are, and people may write their own: what comes of them must be a message again."""
    if not losses.kept.on(message):
        return
    try:
        read(made)
    except (InvalidMessageError, UnstorableValueError) as exc:
        where, label = losses.path(path), losses.kept.label
        raise InvalidMessageError(f"{where}: these notes make no message of {label}: {exc}") from exc


def parsed_arguments(text: str) -> Json | str:
    """The object of a call's arguments, or why they are none. No text at all means no arguments."""
    if not text.strip():
        return {}
    try:
        data = json.loads(text, object_pairs_hook=_object_once, parse_constant=_refuse_constant)
        if type(data) is not dict:
            return f"arguments are {type(data).__name__}, not an object"
        return values.copied_object(data, "arguments")
    except (ValueError, RecursionError) as exc:
        return f"arguments are no JSON object ({exc})"


def _object_once(pairs: list[tuple[str, Any]]) -> Json:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
