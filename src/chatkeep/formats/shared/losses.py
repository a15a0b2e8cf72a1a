"""Notes: what a Message has no field for. Losses: what a caller accepts to lose, and the refusal of all else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from chatkeep import values
from chatkeep.errors import InvalidMessageError
from chatkeep.formats.shared.objects import Json, json_type
from chatkeep.message import Message

HINT = "drop_unsupported=True lets it go"
"""How a caller of the library accepts losses."""


@dataclass(frozen=True)
class Notes:
    """Where the rest of a format's objects is kept."""

    key: str
    """The key in `extra`: the object's other fields, and how it was written."""
    label: str
    """The format, as errors name it."""
    more: Collection[str] = ()
    """Further keys in `extra` that belong to the format."""

    def holding(self, rest: Json) -> Json:
        """The `extra` for the rest of an object."""
        return {self.key: rest} if rest else {}

    def peek(self, extra: Json, name: str) -> Any:
        """One noted field, unchecked; None where there is none."""
        found = extra.get(self.key)
        return found.get(name) if type(found) is dict else None

    def on(self, message: Message) -> bool:
        """Whether anything of the message has notes of this format."""
        inner = [item for part in message.tool_results if not isinstance(part.content, str) for item in part.content]
        keys = {self.key, *self.more}
        return any(keys & getattr(item, "extra", {}).keys() for item in (message, *message.parts, *inner))


@dataclass(frozen=True)
class Losses:
    """What the caller accepts to lose on the way to a format."""

    kept: Notes
    drop: bool = False
    """Leave out what the format can't say, instead of refusing it."""
    hint: str = HINT

    def refuse(self, path: str, reason: str) -> None:
        """Raise, unless losses are accepted."""
        if not self.drop:
            raise InvalidMessageError(f"{path}: {reason}; {self.hint}")

    def refuse_extra(self, extra: Json, path: str) -> None:
        """Refuse every key: this kind of part has no object of its own in the format that could take them."""
        for key in sorted(extra):
            self.refuse(f"{path}.extra.{key}", f"not a field of {self.kept.label}")

    def foreign(self, extra: Json) -> list[str]:
        """The keys of an `extra` that mean nothing to the format."""
        return sorted(extra.keys() - {self.kept.key, *self.kept.more})

    def notes(self, extra: Json, path: str, key: str | None = None) -> Json:
        """A copy of the notes in `extra`; keys that mean nothing to the format are refused."""
        for unknown in self.foreign(extra):
            self.refuse(f"{path}.{unknown}", f"not a field of {self.kept.label}")
        key = key or self.kept.key
        found = extra.get(key, {})
        if type(found) is not dict:
            raise InvalidMessageError(f"{path}.{key}: expected dict, got {json_type(found)}")
        return values.copied_object(found, f"{path}.{key}")

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

    def path(self, path: str) -> str:
        """The path of the notes of what stands at `path`, as errors name it."""
        return f"{path}{'.' if path and not path.endswith('.') else ''}extra.{self.kept.key}"
