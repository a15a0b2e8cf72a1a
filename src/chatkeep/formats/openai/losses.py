"""What a caller accepts to lose on the way to OpenAI's format, and the refusal of all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chatkeep import values
from chatkeep.errors import InvalidMessageError
from chatkeep.formats.openai import shapes

Json = dict[str, Any]


@dataclass(frozen=True)
class Losses:
    """What the caller accepts to lose."""

    drop: bool
    """Leave out what the format can't say, instead of refusing it."""
    reasoning: bool
    """Write thinking as `reasoning_content`."""

    def refuse(self, path: str, reason: str) -> None:
        """Raise, unless losses are accepted."""
        if not self.drop:
            raise InvalidMessageError(f"{path}: {reason}; drop_unsupported=True lets it go")

    def refuse_extra(self, extra: Json, path: str) -> None:
        """Refuse every key: this kind of part has no object of its own in OpenAI's format that could take them."""
        for key in sorted(extra):
            self.refuse(f"{path}.extra.{key}", "not a field of OpenAI's format")

    def notes(self, extra: Json, path: str) -> Json:
        """The notes in `extra`; other keys of it mean nothing to OpenAI."""
        for key in sorted(extra.keys() - {shapes.NOTES}):
            self.refuse(f"{path}.{key}", "not a field of OpenAI's format")
        found = extra.get(shapes.NOTES, {})
        if type(found) is not dict:
            raise InvalidMessageError(f"{path}.{shapes.NOTES}: expected dict, got {type(found).__name__}")
        return values.copied_object(found, f"{path}.{shapes.NOTES}")

    def merge(self, made: Json, noted: Json, path: str) -> Json:
        """Add noted fields to an object; they may not contradict it."""
        for key, value in noted.items():
            if key not in made:
                made[key] = value
            elif type(value) is dict and type(made[key]) is dict:
                self.merge(made[key], value, f"{path}.{key}")
            else:
                self.refuse(f"{path}.{key}", "a note can't stand in for a field of the message itself")
        return made
