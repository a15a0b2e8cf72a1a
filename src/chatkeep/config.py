"""Where settings come from: arguments, then the environment, then chatkeep.toml or [tool.chatkeep]. Opens nothing."""

from __future__ import annotations

import datetime as dt
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy.engine import URL

from chatkeep.backends.plugin import BackendPlugin, OpenRequest, Option
from chatkeep.errors import ConfigurationError, InvalidOwnerError
from chatkeep.registry import find_backend
from chatkeep.storage.checks import check_ttl
from chatkeep.storage.record import NEVER
from chatkeep.urls import parse_url, split_scheme

PREFIX = "CHATKEEP_"
FILE = "chatkeep.toml"
SCHEMA_MODES = ("auto", "migrate", "validate", "ignore")
UNREADABLE_MODES = ("raise", "keep")
LONGEST_SECONDS = 365 * 24 * 3600
MAX_NAME_BYTES = 128
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d|w)\s*")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


class Settings(msgspec.Struct, frozen=True):
    """Everything that opening a repository needs."""

    request: OpenRequest
    plugin: BackendPlugin
    owner: str = ""
    ttl: dt.timedelta | None = None
    on_unreadable: str = "raise"
    retry_seconds: float = 10.0


def parse_duration(value: Any) -> dt.timedelta:
    """A timedelta, a number of seconds, `90d`, `1h 30m`, or ISO 8601 (`P30D`); ValueError says what was expected."""
    if isinstance(value, dt.timedelta):
        return value
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return dt.timedelta(seconds=value)
        if isinstance(value, str) and value.strip():
            text = value.strip()
            if text.lstrip("-").startswith("P"):
                return msgspec.convert(text, dt.timedelta)
            if re.fullmatch(r"\d+(\.\d+)?", text):
                return dt.timedelta(seconds=float(text))
            found = _DURATION.findall(text)
            if found and "".join(_DURATION.split(text)[::3]) == "":
                return dt.timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in found))
    except (OverflowError, msgspec.ValidationError):
        pass
    raise ValueError("expected a duration such as 90d, 12h, 1h 30m, 500ms, P30D or a number of seconds")


def parse_ttl(value: Any) -> dt.timedelta | None:
    """A duration, or `never`."""
    if value is None or value is NEVER or (isinstance(value, str) and value.strip().lower() == "never"):
        return None
    return check_ttl(parse_duration(value))


def parse_seconds(value: Any) -> float:
    """A duration in seconds, more than 0 and up to a year, which drivers and servers can hold."""
    seconds = parse_duration(value).total_seconds()
    if not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError("expected more than 0 seconds and at most a year")
    return seconds


def parse_count(lowest: int, highest: int) -> Any:
    """A parser of whole numbers within bounds."""

    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, str)) or not re.fullmatch(r"-?\d+", str(value)):
            raise ValueError(f"expected a whole number from {lowest} to {highest}")
        if not lowest <= int(value) <= highest:
            raise ValueError(f"expected {lowest} to {highest}, got {int(value)}")
        return int(value)

    return parse


def parse_choice(*choices: str) -> Any:
    """A parser of one word out of a few."""

    def parse(value: Any) -> str:
        if not isinstance(value, str) or value.lower() not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return value.lower()

    return parse


def parse_text(value: Any) -> str:
    """Any non-empty text without NUL that UTF-8 can hold."""
    if not isinstance(value, str) or not value or "\0" in value or re.search("[\ud800-\udfff]", value):
        raise ValueError("expected non-empty text")
    return value


def parse_name(value: Any) -> str:
    """A short text, as servers take it for the name of a program."""
    if len(parse_text(value).encode()) > MAX_NAME_BYTES:
        raise ValueError(f"expected at most {MAX_NAME_BYTES} bytes")
    return str(value)


def _owner(value: Any) -> str:
    from chatkeep.identifiers import check_owner

    return check_owner(value)


COMMON = (
    Option("schema", parse_choice(*SCHEMA_MODES), "auto, migrate, validate or ignore"),
    Option("owner", _owner, "the tenant or user whose conversations are seen"),
    Option("ttl", parse_ttl, "the life of messages, such as 90d; or never"),
    Option("on_unreadable", parse_choice(*UNREADABLE_MODES), "raise or keep"),
    Option("retry_timeout", parse_seconds, "how long contention and broken connections are retried inside"),
    Option("password", parse_text, "the password, where it is not in the URL"),
)


def load_settings(
    url: str | URL | None, options: Mapping[str, Any], *, asynchronous: bool, directory: Path | None = None
) -> Settings:
    """Settings for one repository: an argument wins over the environment, that over a file.

    With a URL as argument, only `password` is taken from elsewhere for it: settings of another database don't apply.
    Raises ConfigurationError naming the source and the known keys or values.
    """
    configured = _configured(directory or Path.cwd())
    source = "argument"
    if url is None:
        if "url" not in configured:
            raise ConfigurationError(
                f"no repository URL: give one, set {PREFIX}URL=sqlite:///chat.db, "
                f'or write url = "sqlite:///chat.db" in {FILE} or under [tool.chatkeep] in pyproject.toml'
            )
        url, source = configured["url"]
    if not isinstance(url, (str, URL)):
        raise ConfigurationError(f"url from {source}: expected text, got {type(url).__name__}")
    parsed = parse_url(url) if isinstance(url, str) else url
    scheme, driver = split_scheme(parsed)
    plugin = find_backend(scheme)
    if driver is not None and driver not in plugin.drivers:
        known = ", ".join(f"{scheme}+{name}" for name in plugin.drivers) or f"{scheme} alone"
        raise ConfigurationError(f"unknown driver {driver!r} for {plugin.name}; known: {known}")
    known_options = {option.name: option for option in (*COMMON, *plugin.options)}
    values: dict[str, Any] = {}
    for name, (value, where) in configured.items():
        if name == "password" and parsed.password is not None and source == "argument":
            continue
        if name != "url" and (source != "argument" or name == "password"):
            values[name] = _parsed(known_options, name, value, where, plugin)
    for name, value in parsed.query.items():
        values[name] = _parsed(known_options, name, value, "the URL", plugin)
    for name, value in options.items():
        if value is not None:
            values[name] = _parsed(known_options, name, value, "argument", plugin)
    common = {option.name: values.pop(option.name) for option in COMMON if option.name in values}
    if "password" in common:
        parsed = parsed.set(password=common["password"])
    schema = common.get("schema", "auto")
    if schema == "auto":
        schema = "migrate" if plugin.embedded else "validate"
    return Settings(
        OpenRequest(parsed.set(query={}), values, schema, asynchronous),
        plugin,
        common.get("owner", ""),
        common.get("ttl"),
        common.get("on_unreadable", "raise"),
        common.get("retry_timeout", 10.0),
    )


def _parsed(known: Mapping[str, Option], name: str, value: Any, where: str, plugin: BackendPlugin) -> Any:
    option = known.get(name)
    if option is None:
        raise ConfigurationError(
            f"unknown option {name!r} from {where} for {plugin.name}; known: {', '.join(sorted(known))}"
        )
    try:
        return option.parse(value)
    except (ValueError, TypeError) as exc:
        if isinstance(exc, InvalidOwnerError) and where == "argument":
            raise
        raise ConfigurationError(f"option {name!r} from {where}: {exc}") from exc


def _configured(directory: Path) -> dict[str, tuple[Any, str]]:
    """Every configured key with its value and source, the environment over the file."""
    found = _from_file(directory)
    for variable, value in os.environ.items():
        # CHATKEEP_TEST_*: the addresses of servers for the project's own tests.
        # Empty is how compose files and shells write "not set".
        if value and variable.startswith(PREFIX) and not variable.startswith(PREFIX + "TEST_"):
            found[variable.removeprefix(PREFIX).lower()] = (value, variable)
    return found


def _from_file(directory: Path) -> dict[str, tuple[Any, str]]:
    own = directory / FILE
    if own.exists():
        return {key: (value, FILE) for key, value in _read(own).items()}
    project = directory / "pyproject.toml"
    if project.is_file():
        tools = _read(project).get("tool", {})
        table = tools.get("chatkeep", {}) if isinstance(tools, dict) else None
        if not isinstance(table, dict):
            raise ConfigurationError("[tool.chatkeep] of pyproject.toml: expected a table")
        return {key: (value, "[tool.chatkeep] of pyproject.toml") for key, value in table.items()}
    return {}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as exc:
        raise ConfigurationError(f"{path.name}: {exc}") from exc
