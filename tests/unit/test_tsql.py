"""SQL Server's statements are read by a parser of T-SQL, since the server itself runs in few of the places that test.

sqlglot turns what it can't read into a `Command` without a word, and reads the SQL of others as well; neither may pass.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.errors import ParseError

from chatkeep.backends.relational import migration
from chatkeep.backends.relational.sqlserver import SqlServerDialect
from chatkeep.backends.relational.sqlserver_connection import settings
from chatkeep.backends.relational.sqlserver_errors import number, words
from chatkeep.backends.relational.sqlserver_migration import SqlServerTarget, batches
from chatkeep.backends.relational.sqlserver_text import PLACEHOLDER, TYPES, bind, literal
from chatkeep.backends.relational.statements import Statement
from chatkeep.errors import SchemaError
from chatkeep.migrations.files import schema_files

DIALECT = SqlServerDialect()
PIECES = {"CONTEXT", "LIVE_COUNT", "LOCK", "MESSAGE_COLUMNS", "NUMBER_BASE"}
"""Constants that are parts of statements."""
FRAGMENTS = {
    "ids": ":id0, :id1",
    "rows": "(:conversation_key, :position0, :content0), (:conversation_key, 2, N'')",
    "cases": "WHEN :position0 THEN :token_count0 WHEN :position1 THEN :token_count1",
    "positions": ":position0, :position1",
}
OF_THE_DIALECT = sorted(
    name for name in dir(DIALECT) if name.isupper() and name not in PIECES and isinstance(getattr(DIALECT, name), str)
)
OF_THE_TARGET = ("ACQUIRE", "ELSEWHERE", "HOLDER", "MARK", "MARKED", "PRODUCT", "RELEASE", "TABLE")
OF_ALL_TARGETS = ("COMPLETE_STEP", "DELETE_STEP", "SELECT_HISTORY", "UPDATE_CHECKSUM")
EXECUTED = re.compile(r"EXEC sp_executesql N'((?:[^']|'')*)', N'([^']*)', (.*)")
FOREIGN = re.compile(
    r"(?<!@)\b(LIMIT|RETURNING|ON CONFLICT|ON DUPLICATE|FOR UPDATE|ILIKE|TRUE|FALSE|MERGE)\b|::|\|\||`", re.I
)
"""What sqlglot would read, and SQL Server would not. And MERGE, which under concurrency is no upsert."""


def read(text: str) -> list[exp.Expression]:
    """The statements of a text, all of them T-SQL and understood."""
    found = [tree for tree in sqlglot.parse(text, dialect="tsql") if tree is not None]
    assert found, "no statement"
    for tree in found:
        not_understood = [command.sql(dialect="tsql") for command in tree.find_all(exp.Command)]
        assert not_understood == []
    outside_of_texts = re.sub(r"'(?:[^']|'')*'|--[^\n]*", "", text)
    foreign = FOREIGN.search(outside_of_texts)
    assert foreign is None, foreign
    return found


def inner(statement: Statement) -> tuple[str, dict[str, str]]:
    """What sp_executesql is given: the statement, and the types of its parameters by name."""
    match = EXECUTED.fullmatch(statement)
    assert match, statement
    types = dict(declaration.split(" ", 1) for declaration in match[2].split(", "))
    return match[1].replace("''", "'"), types


def check(statement: Statement) -> None:
    if statement.names is None:
        read(statement)
        return
    text, types = inner(statement)
    read(text)
    read("DECLARE " + ", ".join(f"{name} {kind}" for name, kind in types.items()))
    assert list(types) == [f"@{name}" for name in statement.names]
    declared = set(re.findall(r"@\w+(?= BIGINT| INT| DATETIME2)", text))
    assert set(re.findall(r"(?<!@)@[a-z]\w*", text)) - declared == set(types)
    assert statement.count(PLACEHOLDER) == len(statement.names)
    read(bind(statement, ["it's"] * len(statement.names)))


@pytest.mark.parametrize("name", OF_THE_DIALECT)
def test_every_statement_of_the_dialect_is_t_sql(name: str) -> None:
    used = {piece: text for piece, text in FRAGMENTS.items() if f"{{{piece}}}" in getattr(DIALECT, name)}
    check(DIALECT.sql(name, **used))


@pytest.mark.parametrize("name", [name for name in OF_THE_DIALECT if "{first}" in getattr(DIALECT, name)])
def test_a_limit_may_be_written_into_a_statement(name: str) -> None:
    text, _ = inner(DIALECT.sql_with_limit(name, 20))
    assert "FETCH NEXT 20 ROWS ONLY" in text
    check(DIALECT.sql_with_limit(name, 20))


@pytest.mark.parametrize("name", OF_THE_TARGET)
def test_every_statement_of_the_migration_target_is_t_sql(name: str) -> None:
    check(DIALECT.compile(getattr(SqlServerTarget, name), lock=literal("chatkeep schema dbo")))


@pytest.mark.parametrize("name", OF_ALL_TARGETS)
def test_the_shared_statements_of_the_targets_are_t_sql(name: str) -> None:
    check(DIALECT.compile(getattr(migration, name), history=migration.HISTORY))


def test_the_settings_of_a_session_are_t_sql() -> None:
    read(settings(10.0))


@pytest.mark.parametrize("file", schema_files("sqlserver"), ids=lambda file: file.name)
def test_every_batch_of_a_schema_file_is_t_sql(file: Any) -> None:
    for _, batch in batches(file.script):
        read(batch)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM chat_message LIMIT 5",
        "UPDATE chat_message SET role = 'x' RETURNING 1",
        "SELECT 1 FROM chat_message FOR UPDATE",
        "INSERT INTO t VALUES (1) ON CONFLICT (x) DO NOTHING",
        "SELECT role ::text FROM chat_message",
        "DENY SELECT ON chat_message TO nobody",
        "CREATE STATISTICS of_roles ON chat_message (role)",
    ],
)
def test_what_is_not_t_sql_or_not_understood_does_not_pass(text: str) -> None:
    with pytest.raises((AssertionError, ParseError)):
        read(text)


def test_an_insert_holds_as_many_rows_as_a_statement_takes_values() -> None:
    statement = DIALECT._insert_of(DIALECT.rows_per_insert)
    check(statement)
    assert len(statement.names or ()) <= 2100
    assert DIALECT.rows_per_insert <= 1000


def test_a_write_gives_the_number_of_its_rows() -> None:
    for name in ("INSERT_CONVERSATION", "UPDATE_TITLE", "DELETE_EXPIRED"):
        assert inner(DIALECT.sql(name))[0].endswith("; SELECT @@ROWCOUNT")
    assert "ROWCOUNT" not in DIALECT.sql("SELECT_CONVERSATION")


@pytest.mark.parametrize("name", [name for name in OF_THE_DIALECT if "owner = :owner" in DIALECT.sql(name).shown])
def test_an_owner_is_looked_for_by_the_hash_that_the_indexes_begin_with(name: str) -> None:
    text, _ = inner(DIALECT.sql(name))
    assert "owner = @owner" not in text
    assert "owner_hash = CAST(HASHBYTES('SHA2_256', @owner) AS BINARY(32))" in text


def test_before_is_a_time_in_purges_and_a_position_in_the_history() -> None:
    assert inner(DIALECT.sql("SELECT_HISTORY"))[1]["@before"] == "BIGINT"
    assert inner(DIALECT.sql("DELETE_EXPIRED"))[1]["@before"] == TYPES["before"] == "DATETIME2(6)"


def test_the_log_shows_names_for_values_and_begins_with_the_verb() -> None:
    assert DIALECT.sql("UPDATE_TITLE").shown.startswith("UPDATE chat_conversation SET title = :title WHERE owner =")
    assert DIALECT.sql("BEGIN").shown.split()[0] == "BEGIN"
    assert DIALECT.sql("COMMIT").shown.split()[0] == "COMMIT"
    assert DIALECT.sql("ROLLBACK").shown.split()[0] == "ROLLBACK"


# --- values ---


def server_reads(text: str) -> str:
    """What SQL Server makes of a literal: doubled quotes are one, and a backslash takes the line's end with it."""
    match = re.fullmatch(r"N'((?:[^']|'')*)'", text)
    assert match, text
    return re.sub(r"\\\r?\n", "", match[1].replace("''", "'"))


DECLARED = re.compile(
    r"DECLARE (@\w+) NVARCHAR\(MAX\) = "
    r"REPLACE\((N'(?:[^']|'')*') COLLATE Latin1_General_100_BIN2, N'(.)', N'\\'\); ",
    re.DOTALL,
)


def server_gets(message: str) -> str:
    """What arrives as the one value of a message."""
    declared = DECLARED.match(message)
    if declared is None:
        return server_reads(message.removeprefix("SELECT "))
    assert message[declared.end() :] == f"SELECT {declared[1]}"
    return server_reads(declared[2]).replace(declared[3], "\\")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
@example("'")
@example("''; DROP TABLE chat_message; --")
@example("docker run \\\n  -it")
@example("a\\\r\nb\\\nc\ue000'\\\\\n")
@example("\\")
@example("? :a @b %s %(c)s {limit} $(d)")
def test_any_text_arrives_as_it_was(text: str) -> None:
    assert server_gets(bind("SELECT ?", [text])) == text


@given(st.text("'\\\n\r\ue000\ue001a", max_size=30))
def test_quotes_backslashes_and_line_ends_arrive_in_any_mixture(text: str) -> None:
    assert server_gets(bind("SELECT ?", [text])) == text


def test_texts_that_need_a_variable_have_one_each() -> None:
    message = bind("EXEC x ?, ?, ?", ["a\\\n", 1, "b\\\n"])
    assert re.findall(r"DECLARE (@\w+)", message) == ["@text0", "@text1"]
    assert message.endswith("EXEC x @text0, 1, @text1")


def test_other_values_have_one_spelling() -> None:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5)
    assert [literal(value) for value in (None, True, -7, moment)] == [
        "NULL",
        "1",
        "-7",
        "N'2026-01-02T03:04:05.000000'",
    ]
    for value in (1.5, b"x", moment.replace(tzinfo=dt.UTC), object()):
        with pytest.raises(TypeError):
            literal(value)


def test_values_must_fit_their_places() -> None:
    with pytest.raises(ValueError, match="1 values for 2 places"):
        bind("SELECT ?, ?", [1])


# --- GO ---


def test_go_on_a_line_of_its_own_ends_a_batch() -> None:
    script = "SELECT 1;\nGO\nSELECT 2\n  go -- now\n\nSELECT 3;\nGo"
    assert [(line, batch.strip()) for line, batch in batches(script)] == [
        (1, "SELECT 1;"),
        (3, "SELECT 2"),
        (5, "SELECT 3;"),
    ]


def test_go_within_texts_comments_and_words_is_none() -> None:
    script = "SELECT '\nGO\n', \"\nGO\n\", [\nGO\n]; /*\nGO\n*/\n-- GO\nGOTO_x: SELECT 1\nSELECT GO\n"
    assert [line for line, _ in batches(script)] == [1]


def test_a_count_behind_go_is_refused() -> None:
    with pytest.raises(SchemaError, match="line 2: behind GO stands '5'"):
        list(batches("SELECT 1\nGO 5\n"))


# --- errors ---


class DriverError(Exception):
    """As pymssql._mssql raises it."""


SERVER_SAID = "DB-Lib error message 20018, severity 14:\nGeneral SQL Server error: Check messages from the SQL Server\n"
NO_CONNECTION = "DB-Lib error message 20009, severity 9:\nUnable to connect (db)\nNet-Lib error (111)\n"


@pytest.mark.parametrize(
    ("given_number", "text", "expected", "said"),
    [
        (1205, f"Process 64 was\ndeadlocked{SERVER_SAID}", 1205, "error 1205: Process 64 was deadlocked"),
        (2627, f"The duplicate key value is (secret).{SERVER_SAID}", 2627, "error 2627"),
        # The number, or the words too, of an earlier failure in the process.
        (18456, NO_CONNECTION, 20009, "error 20009: Unable to connect (db) Net-Lib error (111)"),
        (18456, f"Login failed{NO_CONNECTION}", 20009, "error 20009: Unable to connect (db) Net-Lib error (111)"),
        (18456, "Unknown error", 20002, "error 20002: Unknown error"),
        (None, "Not connected to any MS SQL server", 0, "Not connected to any MS SQL server"),
    ],
)
def test_a_driver_error_has_a_number_and_words_without_values(
    given_number: int | None, text: str, expected: int, said: str
) -> None:
    error = DriverError(text if given_number is None else (given_number, text.encode()))
    assert (number(error), words(error)) == (expected, said)


def test_the_schema_file_says_what_makes_its_indexes_usable() -> None:
    script = Path(__file__).parents[2].joinpath("schemas/sqlserver/V0001__chat_memory.sql").read_text(encoding="utf-8")
    for setting in re.findall(r"SET \w+ (?:ON|OFF)(?=;|$)", settings(1.0)):
        if "ANSI_NULL_DFLT" in setting or any(name in setting for name in ("NOCOUNT", "IMPLICIT", "CURSOR")):
            continue
        assert f"{setting};" in script
