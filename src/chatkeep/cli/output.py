"""Where output goes: consoles for people, bytes for programs, one line for errors. Decides nothing about content."""

from __future__ import annotations

import os
import stat
import sys
import traceback
from typing import IO, TYPE_CHECKING, Any

from chatkeep.cli.secrets import masked
from chatkeep.cli.text import one_line, safe

if TYPE_CHECKING:
    from rich.console import Console


def is_terminal(stream: IO[Any] | None) -> bool:
    """Whether a person is likely to look at it."""
    return stream is not None and not stream.closed and stream.isatty()


def is_file(stream: IO[Any] | None) -> bool:
    """Whether it goes to a file on disk."""
    try:
        return stream is not None and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def console(*, stderr: bool = False) -> Console:
    """A console that neither reads markup nor emoji codes nor colours what looks like a number."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # the one place that handles it is guard.py

    return _Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def write(data: bytes) -> None:
    """Bytes to standard output as they are: data is UTF-8 whatever the terminal's encoding."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(data.decode())
    else:
        buffer.write(data)


def line(text: str) -> None:
    """A line of plain text to standard output, as it is."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A line for people to standard error, out of the way of data."""
    print(masked(one_line(text)), file=sys.stderr)


def error(text: str) -> None:
    """One line to standard error."""
    label = "error:"
    if is_terminal(sys.stderr) and "NO_COLOR" not in os.environ:
        label = f"\x1b[1;31m{label}\x1b[0m"
    print(f"{label} {masked(one_line(text))}", file=sys.stderr)


def show_traceback(exc: BaseException) -> None:
    """The traceback of an error and its causes, without local variables."""
    text = "".join(traceback.format_exception(exc))
    print(masked(safe(text)), end="", file=sys.stderr)
