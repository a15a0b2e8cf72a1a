"""open_repository and open_async_repository: settings -> backend -> schema check -> repository."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING, Any, Literal

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.record import Never
from chatkeep.storage.repository import Calls
from chatkeep.storage.runner import Call, SyncRunner, async_runner

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from chatkeep.config import Settings
    from chatkeep.storage.backend import Backend

SchemaMode = Literal["auto", "migrate", "validate", "ignore"]


def open_repository(
    url: str | URL | None = None,
    *,
    schema: SchemaMode | None = None,
    owner: str | None = None,
    ttl: dt.timedelta | Never | None = None,
    **options: Any,
) -> ChatMemoryRepository:
    """Open the repository of a URL, or of the configuration where no URL is given.

    `url`: `sqlite:///chat.db`, `postgresql://user:password@host/database`, `inprocess:`, … Without one:
    `CHATKEEP_URL`, then `url` in chatkeep.toml or under [tool.chatkeep] of pyproject.toml.
    `schema`: "migrate" brings the tables to this version, "validate" only checks, "ignore" does neither; "auto" (the
    default) migrates embedded engines and validates servers, whose schema is never changed unasked.
    `owner`: the tenant or user whose conversations are seen, `""` when nobody is named.
    `ttl`: the life of messages unless a call says otherwise; `NEVER` for none, also against the configuration.
    `options`: `on_unreadable` ("raise" or "keep"), `password`, `retry_timeout`, and the backend's own, such as
    `pool_size`; the same names work in the URL's query and in the configuration.

    Raises ConfigurationError for anything unknown or wrong, SchemaError where tables are missing or of another
    version (its text names the command to run), StorageError where the engine can't be reached.
    """
    settings = _settings(url, schema, owner, ttl, options, asynchronous=False)
    backend = settings.plugin.open(settings.request)
    try:
        _prepare_schema(settings, backend)
        return ChatMemoryRepository(_calls(settings, backend), SyncRunner(settings.retry_seconds))
    except BaseException:
        backend.close()
        raise


async def open_async_repository(
    url: str | URL | None = None,
    *,
    schema: SchemaMode | None = None,
    owner: str | None = None,
    ttl: dt.timedelta | Never | None = None,
    **options: Any,
) -> AsyncChatMemoryRepository:
    """The awaitable twin of `open_repository`: `async with await open_async_repository(…) as repository:`."""
    settings = _settings(url, schema, owner, ttl, options, asynchronous=True)
    backend = settings.plugin.open(settings.request)
    runner = async_runner(backend, settings.retry_seconds)
    try:
        if settings.plugin.migrations is not None and settings.request.schema != "ignore":
            await asyncio.to_thread(_prepare_schema, settings, backend)
        return AsyncChatMemoryRepository(_calls(settings, backend), runner)
    except BaseException:
        await runner.run(Call(lambda _: backend.close(), repeatable=False))
        runner.close()
        raise


def _settings(
    url: str | URL | None,
    schema: str | None,
    owner: str | None,
    ttl: dt.timedelta | Never | None,
    options: dict[str, Any],
    *,
    asynchronous: bool,
) -> Settings:
    # Imported here: it brings SQLAlchemy's URL, and `import chatkeep` should stay quick.
    from chatkeep.config import load_settings

    named = {"schema": schema, "owner": owner, "ttl": ttl}
    return load_settings(url, {**options, **named}, asynchronous=asynchronous)


def _calls(settings: Settings, backend: Backend) -> Calls:
    return Calls(backend, settings.owner, settings.ttl, keep_unreadable=settings.on_unreadable == "keep")


def _prepare_schema(settings: Settings, backend: Backend) -> None:
    mode = settings.request.schema
    if settings.plugin.migrations is None or mode == "ignore":
        return
    from chatkeep.migrations.runner import migrate, validate

    target = settings.plugin.migrations(settings.request, backend)
    try:
        if mode == "migrate":
            migrate(target)
        else:
            validate(target)
    finally:
        target.close()
