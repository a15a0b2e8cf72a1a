"""A provider's message JSON <-> Message, without loss; one package per format, imported when asked for.

`find_format` gives one by name, as the command line does: see `chatkeep.formats.documents`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chatkeep.formats.documents import Format

__all__ = ["find_format", "format_names"]


def format_names() -> list[str]:
    """The names of all formats."""
    from chatkeep.formats.documents import FORMATS

    return list(FORMATS)


def find_format(name: str) -> Format:
    """The format of a name; ConfigurationError with the list of the known where there is none."""
    from chatkeep.errors import ConfigurationError
    from chatkeep.formats.documents import FORMATS

    if name not in FORMATS:
        raise ConfigurationError(f"unknown format {name!r:.60}; known are {', '.join(FORMATS)}")
    return FORMATS[name]
