"""T-SQL as text: statements with typed parameters, and values as literals. Knows no driver.

Each statement with values becomes `EXEC sp_executesql`, in which the server sees them as parameters of a stated type:
it compiles a statement once, whatever the values are, and never reads them as SQL. The driver itself takes nothing but
text, so `literal` is the one place where a value is quoted.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from chatkeep.backends.relational.statements import Statement, compile_statement

ID = "NVARCHAR(510)"
"""255 characters, of which those beyond the Basic Multilingual Plane take two units of UTF-16."""
TIME = "DATETIME2(6)"
TYPES = {
    "owner": ID,
    "conversation_id": ID,
    "after_id": ID,
    "message_id": ID,
    "id": ID,
    "title": ID,
    "role": "NVARCHAR(128)",
    "content": "NVARCHAR(MAX)",
    "body": "NVARCHAR(MAX)",
    "metadata": "NVARCHAR(MAX)",
    "created_at": TIME,
    "expires_at": TIME,
    "after_time": TIME,
    "before": TIME,
    "after": "BIGINT",
    "conversation_key": "BIGINT",
    "position": "BIGINT",
    "last_position": "BIGINT",
    "system_position": "BIGINT",
    "context_start": "BIGINT",
    "version": "BIGINT",
    "message_count": "BIGINT",
    "token_count": "BIGINT",
    "token_estimator": "NVARCHAR(64)",
    "limit": "BIGINT",
    "checksum": "NVARCHAR(64)",
    "success": "BIT",
    "name": "NVARCHAR(255)",
}
"""The type of a parameter by its name; digits at its end number the rows or ids of one statement."""

PLACEHOLDER = "?"
_NAME = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_POSITIONS = re.compile(r"position [<>] @(\w+)")
"""`before` is a time in purges, and a position where it is compared with one."""
_WRITE = re.compile(r"(INSERT|UPDATE|DELETE)\b")
_REWRITES = (
    # Two ids of 255 characters are longer than the key of an index may be; the hash of the owner takes 32 bytes.
    (re.compile(r"\bowner = @owner\b"), "owner_hash = CAST(HASHBYTES('SHA2_256', @owner) AS BINARY(32))"),
    # The condition of the filtered indexes, in so many words, so that the optimizer takes them.
    (re.compile(r"((?:\w\.)?expires_at) <= "), r"\1 IS NOT NULL AND \1 <= "),
)
_CONTINUED = re.compile(r"\\(?=\r?\n)")
_PRIVATE_USE = (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE))
"""Characters of which no text holds all."""


def compile_tsql(text: str, **fragments: str) -> Statement:
    """The statement as one text with a place for each value; a write ends by giving the number of its rows."""
    plain = compile_statement(text, "qmark", **fragments)
    inner = tsql(plain.shown)
    names = tuple(dict.fromkeys(plain.names or ()))
    if not names:
        return Statement(inner, plain.shown)
    numbers = set(_POSITIONS.findall(inner))
    types = ", ".join(f"@{name} {'BIGINT' if name in numbers else type_of(name)}" for name in names)
    values = ", ".join(f"@{name} = {PLACEHOLDER}" for name in names)
    return Statement(f"EXEC sp_executesql {literal(inner)}, {literal(types)}, {values}", plain.shown, names)


def tsql(shown: str) -> str:
    """A statement with `:name` for values as T-SQL, which has `@name`."""
    inner = _NAME.sub(r"@\1", shown)
    for pattern, replacement in _REWRITES:
        inner = pattern.sub(replacement, inner)
    return f"{inner}; SELECT @@ROWCOUNT" if _WRITE.match(inner) else inner


def type_of(name: str) -> str:
    """The type of the parameter `name`."""
    return TYPES[name.rstrip("0123456789")]


def bind(statements: str, values: Sequence[Any]) -> str:
    """The message to send: the values at their places."""
    pieces = statements.split(PLACEHOLDER)
    if len(pieces) != len(values) + 1:
        raise ValueError(f"{len(values)} values for {len(pieces) - 1} places")
    declared: list[str] = []
    text = [pieces[0]]
    for value, piece in zip(values, pieces[1:], strict=True):
        if isinstance(value, str) and _CONTINUED.search(value):
            text.append(_declare(value, declared))
        else:
            text.append(literal(value))
        text.append(piece)
    return "".join(declared + text)


def literal(value: Any) -> str:
    """A value as T-SQL spells it. With N and doubled quotes, the only character that means something is the quote."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "N'" + value.replace("'", "''") + "'"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        # ISO 8601 with T is read alike under every DATEFORMAT and LANGUAGE.
        return f"N'{value.isoformat(timespec='microseconds')}'"
    raise TypeError(f"{type(value).__name__} has no literal here")


def _declare(value: str, declared: list[str]) -> str:
    """A variable for a text with a backslash at the end of a line, which a literal would lose together with the break.

    https://learn.microsoft.com/sql/t-sql/language-elements/sql-server-utilities-statements-backslash
    """
    name = f"@text{len(declared)}"
    stand_in = next(char for char in map(chr, _PRIVATE_USE) if char not in value)
    quoted = literal(_CONTINUED.sub(stand_in, value))
    declared.append(
        f"DECLARE {name} NVARCHAR(MAX) = "
        f"REPLACE({quoted} COLLATE Latin1_General_100_BIN2, {literal(stand_in)}, N'\\'); "
    )
    return name
