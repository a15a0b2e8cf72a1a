"""Where the demo runs: a database file of its own, or the database of a URL. Opens and migrates it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import URL

from chatkeep import NEVER, ChatMemoryRepository, open_repository
from chatkeep.urls import parse_url, shown

if TYPE_CHECKING:
    from chatkeep.migrations.runner import MigrationReport

FILE = "chat.db"


@dataclass(frozen=True)
class Place:
    """One of the two is set."""

    file: Path | None = None
    text: str | None = None

    @classmethod
    def of_worker(cls, job: dict[str, Any]) -> Place:
        """The place that `for_worker` described."""
        return cls(None if job["file"] is None else Path(job["file"]), job["url"])

    def for_worker(self) -> dict[str, Any]:
        """The place as JSON values."""
        return {"file": None if self.file is None else str(self.file), "url": self.text}

    @property
    def url(self) -> URL:
        """As an object: a path may hold characters that the text of a URL can't."""
        return URL.create("sqlite", database=str(self.file)) if self.text is None else parse_url(self.text)

    @property
    def shown(self) -> str:
        """For people, without password and options."""
        return shown(self.url)

    @property
    def is_complete(self) -> bool:
        """Whether what is shown can be copied into a command: it hides nothing, and reads as the same place."""
        return self.url.password is None and not self.url.query and parse_url(self.shown) == self.url

    def open(self, owner: str = "") -> ChatMemoryRepository:
        """A repository; messages without a `ttl` of their own stay."""
        return open_repository(self.url, owner=owner, ttl=NEVER)

    def migrate(self) -> MigrationReport | None:
        """Bring an embedded database to this version; None for servers, whose schema is never changed unasked."""
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        from chatkeep.config import load_settings
        from chatkeep.migrations.runner import migrate

        settings = load_settings(self.url, {}, asynchronous=False)
        if settings.plugin.migrations is None or settings.request.schema != "migrate":
            return None
        target = settings.plugin.migrations(settings.request, None)
        try:
            return migrate(target)
        finally:
            target.close()
