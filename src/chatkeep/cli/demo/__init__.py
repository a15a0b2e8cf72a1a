"""`chatkeep demo`: a real conversation from a JSON file into a database and back, each step proved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def run_demo(url: str | None = None, directory: Path | None = None, console: Console | None = None) -> int:
    """Run all steps and print them; 0, or 1 where one failed.

    On a database file of its own, in `directory` or in one that is removed at the end; or on the database of `url`,
    where the conversation stays and the throw-away ones, of an owner of their own, go.
    """
    # The other process of the demo imports this package too, and needs none of that.
    from chatkeep.cli.demo.steps import run

    return run(url, directory, console)
