"""Finds and reads the schema files of a backend. Knows no database."""

from __future__ import annotations

import hashlib
import importlib.resources
import re
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from chatkeep.errors import SchemaError

SUFFIXES = ("sql", "cql", "cypher")
_NAME = re.compile(rf"V(\d{{4,}})__([a-z0-9]+(?:_[a-z0-9]+)*)\.({'|'.join(SUFFIXES)})")
_TABLES = re.compile(
    r"""
      --[^\n]* | /\*.*?\*/ | '(?:[^']|'')*'
    | \bcreate\s+table\s+(?:if\s+not\s+exists\s+)?(?P<created>\w+)
    | \bdrop\s+table\s+(?:if\s+exists\s+)?(?P<dropped>\w+)
    | \balter\s+table\s+(?:if\s+exists\s+)?(?P<old>\w+)\s+rename\s+to\s+(?P<new>\w+)
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


class SchemaFile(msgspec.Struct, frozen=True):
    """One step: `V0001__chat_memory.sql`."""

    version: int
    description: str
    """The words of the name: `chat memory`."""
    name: str
    script: str
    """The text, with `\\n` at the end of every line."""
    checksum: str
    """SHA-256 of `script`: a checkout with other line ends has the same."""


def schema_files(backend: str, directory: Traversable | None = None) -> list[SchemaFile]:
    """The steps of a backend in order, from `directory` or from what is shipped with the package.

    Raises SchemaError for a name that is no step's, for a version given twice, and for a gap.
    """
    found = schema_directory(backend) if directory is None else directory
    files = [_read(entry, backend) for entry in found.iterdir() if _is_step(entry, backend)]
    files.sort(key=lambda file: (file.version, file.name))
    if not files:
        raise SchemaError(f"there are no schema files for {backend} in {found}; reinstall chatkeep", backend=backend)
    for expected, file in enumerate(files, start=1):
        if file.version == expected:
            continue
        if expected > 1 and file.version == files[expected - 2].version:
            problem = f"{files[expected - 2].name} and {file.name} have the same version"
        else:
            problem = f"{file.name} comes where version {expected} was expected; versions begin at 1, without gaps"
        raise SchemaError(f"schema files of {backend}: {problem}", backend=backend)
    return files


def latest_version(backend: str) -> int:
    """The version this package works with."""
    return schema_files(backend)[-1].version


def schema_directory(backend: str) -> Traversable:
    """Where the schema files of a backend are: in the package (a wheel) or beside `src` (a checkout, editable)."""
    package = importlib.resources.files("chatkeep")
    candidates: list[Traversable] = [package / "schemas" / backend]
    if isinstance(package, Path):
        candidates.append(package.parent.parent / "schemas" / backend)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    looked = " and ".join(str(candidate) for candidate in candidates)
    raise SchemaError(
        f"there are no schema files for {backend}: looked in {looked}; reinstall chatkeep", backend=backend
    )


def vector_directory(backend: str) -> Traversable:
    """Where the steps of its optional tables of vectors are."""
    return schema_directory(backend) / "vectors"


def tables_after(files: list[SchemaFile]) -> set[str]:
    """The tables that exist once these steps have run, as their statements name them."""
    tables: set[str] = set()
    for file in files:
        for match in _TABLES.finditer(file.script):
            if match["created"]:
                tables.add(match["created"].lower())
            elif match["dropped"]:
                tables.discard(match["dropped"].lower())
            elif match["old"]:
                tables.discard(match["old"].lower())
                tables.add(match["new"].lower())
    return tables


def _is_step(entry: Traversable, backend: str) -> bool:
    """Whether an entry is a step; a README is not, and what looks like a misnamed step is an error."""
    if _NAME.fullmatch(entry.name):
        return True
    if entry.is_dir():
        return False  # optional tables with a history of their own
    if entry.name[:1] in ("V", "v") or entry.name.rpartition(".")[2].lower() in SUFFIXES:
        raise SchemaError(
            f"schema files of {backend}: {entry.name!r} is no name of a step; expected V0001__what_it_does.sql: four "
            f"digits or more, two underscores, small letters, digits and single underscores",
            backend=backend,
        )
    return False


def _read(entry: Traversable, backend: str) -> SchemaFile:
    match = _NAME.fullmatch(entry.name)
    assert match is not None
    try:
        # utf-8-sig: some editors put a byte order mark there, which engines refuse.
        text = entry.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise SchemaError(f"schema files of {backend}: {entry.name} is not UTF-8", backend=backend) from exc
    script = text.replace("\r\n", "\n").replace("\r", "\n")
    checksum = hashlib.sha256(script.encode()).hexdigest()
    return SchemaFile(int(match[1]), match[2].replace("_", " "), entry.name, script, checksum)
