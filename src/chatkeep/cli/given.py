"""What every command takes: the database, the owner, --debug; and how it opens a repository from them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from chatkeep.cli import secrets

if TYPE_CHECKING:
    from chatkeep.config import Settings
    from chatkeep.migrations.target import Target
    from chatkeep.repository import ChatMemoryRepository

_PANEL = "Where"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        "-u",
        metavar="URL",
        rich_help_panel=_PANEL,
        help="The database, such as sqlite:///chat.db. Without it: CHATKEEP_URL, chatkeep.toml, pyproject.toml.",
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        metavar="NAME",
        rich_help_panel=_PANEL,
        help="Whose conversations are meant; default: nobody's.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", rich_help_panel=_PANEL, help="Show the traceback of an error.")]


class Given(msgspec.Struct):
    """The options that all commands share, as this run got them."""

    url: str | None = None
    owner: str | None = None
    debug: bool = False
    command: str = ""
    can_keep_unreadable: bool = False

    def settings(self, url: str | None = None) -> Settings:
        """The settings of the database; its password is masked in all output from now on."""
        from chatkeep.config import load_settings

        settings = load_settings(url or self.url, {"owner": self.owner}, asynchronous=False)
        secrets.learn(settings.request.url.password)
        return settings

    def repository(self, *, url: str | None = None, reading: bool, **options: Any) -> ChatMemoryRepository:
        """Open the repository. `reading`: the command can't mean to create a database file that isn't there."""
        from chatkeep.opening import open_repository

        settings = self.settings(url)
        if reading:
            require_file(settings)
        return open_repository(url or self.url, owner=self.owner, **options)

    @contextlib.contextmanager
    def target(self, settings: Settings, *, reading: bool, vectors: bool = False) -> Iterator[Target | None]:
        """The migration target of the database, or of its tables of vectors; None where the backend has none."""
        migrations = settings.plugin.vector_migrations if vectors else settings.plugin.migrations
        if migrations is None:
            yield None
            return
        if reading:
            require_file(settings)
        target = migrations(settings.request, None)
        try:
            yield target
        finally:
            target.close()


def given(ctx: typer.Context, url: str | None, owner: str | None, debug: bool) -> Given:
    """The shared options of a command, over those before the command's name."""
    found: Given = ctx.ensure_object(Given)
    found.url = url if url is not None else found.url
    found.owner = owner if owner is not None else found.owner
    found.debug = debug or found.debug
    found.command = ctx.info_name or ""
    found.can_keep_unreadable = "keep_unreadable" in ctx.params
    return found


def require_file(settings: Settings) -> None:
    """Refuse to read from a database file that does not exist: SQLite would create an empty one."""
    from chatkeep.errors import ConfigurationError

    name = settings.request.url.database
    if settings.plugin.name != "sqlite" or not name or name == ":memory:" or name.startswith("file:"):
        return
    if not Path(name).exists():
        raise ConfigurationError(
            f"there is no database file {name!r}; check the path, or create it with `chatkeep migrate`"
        )


def place(settings: Settings) -> str:
    """Where the database is, without password and options."""
    from chatkeep.urls import shown

    return shown(settings.request.url)
