"""The table of commands. Each lives in the module of its subject."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

from chatkeep.cli import browse, doctor, move, remove, schema
from chatkeep.cli.given import Debug, Given, Owner, Url, given
from chatkeep.cli.guard import Group

app = typer.Typer(
    cls=Group,
    name="chatkeep",
    help="Chat memory and history in a database: migrate it, look at it, move it, clean it up.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage or configuration. Before an id that begins with a dash: --",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from chatkeep import __version__

        typer.echo(f"chatkeep {__version__}")
        raise typer.Exit


@app.callback()
def _shared(
    ctx: typer.Context,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    given(ctx, url, owner, debug)


app.command(rich_help_panel="Schema")(schema.migrate)
app.command(rich_help_panel="Schema")(schema.status)
app.command(rich_help_panel="Schema")(schema.validate)
app.command(rich_help_panel="Schema")(schema.sql)
app.command(rich_help_panel="Schema")(schema.repair)
app.command(rich_help_panel="Conversations")(browse.ls)
app.command(rich_help_panel="Conversations")(browse.show)
app.command(rich_help_panel="Conversations")(remove.delete)
app.command(rich_help_panel="Conversations")(remove.purge)
app.command(rich_help_panel="Moving")(move.export)
app.command("import", rich_help_panel="Moving")(move.import_)
app.command(rich_help_panel="Moving")(move.copy)
app.command(rich_help_panel="Getting started")(doctor.doctor)


@app.command(rich_help_panel="Getting started")
def demo(
    ctx: typer.Context,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="DIR", help="Leave the files of the demo in this directory.")
    ] = None,
    url: Url = None,
    debug: Debug = False,
) -> None:
    """Show what chatkeep does, step by step, on a database of its own or on the one of --url."""
    from pathlib import Path

    from chatkeep.cli.demo import run_demo
    from chatkeep.cli.output import console

    here: Given = given(ctx, url, None, debug)
    raise typer.Exit(run_demo(here.url, None if keep is None else Path(keep), console()))


def main() -> None:
    """The entry point of `chatkeep` and `python -m chatkeep`."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows a ? instead of ending the command.
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    app(prog_name="chatkeep")
