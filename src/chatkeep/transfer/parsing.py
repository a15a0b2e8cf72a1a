"""JSON out of the lines of a file. Knows neither conversations nor repositories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from chatkeep.errors import InvalidMessageError
from chatkeep.storage.jsontext import load_json


def parsed(line: bytes | str) -> Any:
    """The value of one line; None of a blank one. ValueError where it is no JSON."""
    try:
        text = line.decode("utf-8-sig") if isinstance(line, bytes) else line
        return load_json(text) if text.strip() else None
    except RecursionError as exc:
        raise ValueError("not JSON in UTF-8 (nested too deeply)") from exc
    except ValueError as exc:
        raise ValueError(f"not JSON in UTF-8 ({exc})") from exc


def documents(lines: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """The values of a file, each with its place: JSON Lines, or one JSON text over many lines.

    A text over many lines is held in memory as a whole. InvalidMessageError with the place where something is no JSON.
    """
    source = enumerate(lines, 1)
    for number, line in source:
        try:
            value = parsed(line)
        except ValueError as exc:
            if not isinstance(exc.__cause__, json.JSONDecodeError):
                raise InvalidMessageError(f"line {number}: {exc}") from exc
            yield "", _whole(line, (more for _, more in source), number)
            return
        if value is not None:
            yield f"line {number}", value
            break
    for number, line in source:
        try:
            value = parsed(line)
        except ValueError as exc:
            raise InvalidMessageError(f"line {number}: {exc}") from exc
        if value is not None:
            yield f"line {number}", value


def _whole(first: bytes, more: Iterable[bytes], number: int) -> Any:
    """The value of a text over many lines; `number` is that of the first."""
    try:
        return parsed(first + b"".join(more))
    except ValueError as exc:
        cause = exc.__cause__
        if isinstance(cause, json.JSONDecodeError):
            place = f"line {cause.lineno + number - 1}, column {cause.colno}"
            raise InvalidMessageError(f"{place}: not JSON ({cause.msg})") from exc
        raise InvalidMessageError(str(exc)) from exc
