"""Repository URLs: text to parts. Never prints a password; knows no backend."""

from __future__ import annotations

import re
from urllib.parse import unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from chatkeep.errors import ConfigurationError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+._-]*):(.*)", re.DOTALL)
_OPTION = re.compile(r"[a-z_]+")
_USER_INFO = re.compile(r"([^:/?#]*)(?::(.*))?", re.DOTALL)


def parse_url(text: str) -> URL:
    """The parts of `scheme://user:password@host:port/database?option=value`, or of `scheme:name` without an authority.

    A password may be percent-encoded, and must be where it holds `%xx` or `?`; other characters work as they are.
    """
    match = _SCHEME.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ConfigurationError("the repository URL has no scheme; expected for example sqlite:///chat.db")
    scheme, rest = match.groups()
    if not rest.startswith("//"):
        name, _, query = rest.partition("?")
        rest = f"///{name}" + (f"?{query}" if query else "")
    before_query, mark, query = rest[2:].partition("?")
    if "@" in query and "@" not in before_query:
        raise ConfigurationError(f"the {scheme}: URL has an @ behind a ?; a ? in a password must be written as %3F")
    for piece in filter(None, query.split("&")):
        name, _, value = piece.partition("=")
        if not (name and value):
            # SQLAlchemy passes over such a piece without a word. What is no name may be part of a password.
            shown_name = repr(name) if _OPTION.fullmatch(name) else "a piece"
            raise ConfigurationError(f"the {scheme}: URL: {shown_name} behind the ? has no name or no value")
    # The last @ ends the user and password, so that a password may hold @ : / and # as they are.
    user_info, at, host = before_query.rpartition("@")
    if not _USER_INFO.fullmatch(user_info):
        # An @ in a file's path: there is no user before it.
        user_info, at, host = "", "", before_query
    try:
        url = make_url(f"{scheme}://{host}{mark}{query}")
    except (ArgumentError, ValueError) as exc:
        # SQLAlchemy's text repeats the URL; ours must not, for what looks like a host may be part of a password.
        raise ConfigurationError(f"the {scheme}: URL can't be parsed; check host, port and percent-encoding") from exc
    credentials = _USER_INFO.fullmatch(user_info)
    if at and credentials:
        user, password = credentials.groups()
        url = url.set(username=unquote(user), password=None if password is None else unquote(password))
    if any("\0" in (part or "") for part in (url.username, url.password, url.host, url.database)):
        raise ConfigurationError(f"the {scheme}: URL holds a NUL character")
    return url


def check_host(url: URL, name: str) -> None:
    """Refuse a slash too many: the account would be taken, and shown, as the name of the database."""
    if not url.host and "@" in (url.database or ""):
        raise ConfigurationError(f"{name}: the URL has no host before its @; expected {name}://user@host/database")


def split_scheme(url: URL) -> tuple[str, str | None]:
    """`postgresql+psycopg` as ("postgresql", "psycopg")."""
    scheme, _, driver = url.drivername.lower().partition("+")
    return scheme, driver or None


def shown(url: URL) -> str:
    """The URL for people: the password as ***, and no option values, which may be secret too."""
    return url.set(query={}).render_as_string(hide_password=True)
