"""Writes samples/<backend>/V<version>.sql and .json: rows as this version stores them, and what reading them gives.

Run once for each new schema version, before its release, and never again for it: rows that users have don't change.

    python -m tests.migrations.make_samples sqlite:////tmp/empty.db
    python -m tests.migrations.make_samples 'postgresql://user:password@host/database?search_path=an_empty_schema'
    python -m tests.migrations.make_samples mysql://user:password@host/an_empty_database
"""

import datetime as dt
import json
import sys
from pathlib import Path
from typing import Any

from chatkeep import (
    ChatMemoryRepository,
    Media,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    open_repository,
)
from chatkeep.config import load_settings
from chatkeep.migrations.files import latest_version
from chatkeep.urls import split_scheme

SAMPLES = Path(__file__).parent / "samples"
START = dt.datetime(2026, 1, 2, 3, 4, 5, 678_901, dt.UTC)
TABLES = ("chat_conversation", "chat_message")
COLUMNS = """
    SELECT column_name FROM information_schema.columns
    WHERE table_schema = {here} AND table_name = '{table}' ORDER BY ordinal_position
"""
COLUMNS_OF = {
    "sqlite": "SELECT name FROM pragma_table_info('{table}')",
    "postgresql": COLUMNS.replace("{here}", "current_schema()"),
    "mysql": COLUMNS.replace("{here}", "DATABASE()"),
    "mariadb": COLUMNS.replace("{here}", "DATABASE()"),
}


def messages() -> list[Message]:
    """One of every kind: roles, parts, texts that are easy to spoil."""
    made = [
        Message.system("Be brief."),
        Message.user("It's 100% fine:\n\ttabs, \"quotes\", 'quotes', \\backslashes; -- ümläuts, 漢字, 👩‍👩‍👧 :a %s"),
        Message.assistant([Thinking("First, the weather.", "c2ln"), Text("Let me look.")], tool_calls=[
            ToolCall("call_1", "weather", '{"city": "Zürich",  "days":1e0}'),
            ToolCall("call_2", "search"),
        ]),
        Message.tool("12 °C", call_id="call_1", name="weather"),
        Message.tool([Text("a map"), Media("image/png", b"\x89PNG\r\n\x00\xff")], call_id="call_2", is_error=True),
        Message.assistant("12 degrees.", metadata={"tokens": 17, "big": 2**70, "all": {"a": [1, 2.5, None, True, ""]}}),
        Message.user([Text("and this?", {"cache_control": {"type": "ephemeral"}}),
                      Media("image/jpeg", url="https://example.org/a.jpg", name="a.jpg")], name="ada"),
        Message("critic", (Opaque("acme.future", {"k": ["v", 1]}),)),
        Message.user(""),
        Message("assistant"),
        Message.user("a NUL \x00 and a lone surrogate \ud800"),
        Message.user([ToolResult("call_3", "outer", extra={"x": 1})]),
    ]  # fmt: skip
    return [
        Message(m.role, m.parts, f"sample-{n:02}", START + dt.timedelta(minutes=n), m.name, m.metadata, m.extra)
        for n, m in enumerate(made)
    ]


def fill(repository: ChatMemoryRepository) -> None:
    """Owners, expiry, metadata, an empty conversation, and positions with a gap."""
    kinds = messages()
    repository.append("kinds", kinds[:4])
    repository.append("kinds", kinds[4:])
    repository.update_conversation("kinds", title="Wetter in Zürich", metadata={"tags": ["a", "b"], "n": 1})
    other = repository.for_owner("Ada & Co. ☕")
    other.append("kinds", [Message.user("another owner's", id="sample-00", created_at=START)])
    repository.append("gap", [Message.user(text, id=text, created_at=START) for text in ("one", "two", "three")])
    repository.delete_messages("gap", ["two"])
    repository.append(
        "expiring",
        [Message.user("kept for long", id="long", created_at=START), Message.user("gone", id="gone", created_at=START)],
        ttl=dt.timedelta(days=9000),
    )
    repository.save_all("empty", [])


def read(repository: ChatMemoryRepository) -> dict[str, Any]:
    """Everything that can be read, as JSON values."""
    found: dict[str, Any] = {}
    for owner in ("", "Ada & Co. ☕"):
        handle = repository.for_owner(owner)
        for conversation in handle.list_conversations().items:
            found[f"{owner}/{conversation.id}"] = {
                "title": conversation.title,
                "metadata": conversation.metadata,
                "created_at": conversation.created_at.isoformat(),
                "updated_at": conversation.updated_at.isoformat(),
                "version": conversation.version,
                "message_count": conversation.message_count,
                "entries": [
                    {
                        "position": entry.position,
                        "expires_at": entry.expires_at.isoformat() if entry.expires_at else None,
                        "token_count": entry.token_count,
                        "message": entry.message.to_dict(),
                    }
                    for entry in handle.history(conversation.id, limit=1000).items
                ],
            }
    return found


def rows_as_sql(url: str) -> str:
    """The tables' rows as INSERT statements, with fixed times in place of the clock's."""
    settings = load_settings(url, {}, asynchronous=False)
    backend: Any = settings.plugin.open(settings.request)
    name = settings.plugin.name
    lines = []
    with backend.database.session() as session:
        for table in TABLES:
            columns = [row[0] for row in session.rows(COLUMNS_OF[name].replace("{table}", table))]
            overriding = " OVERRIDING SYSTEM VALUE" if name == "postgresql" and table == "chat_conversation" else ""
            for row in session.rows(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1, 2"):
                values = dict(zip(columns, row, strict=True))
                settled = ", ".join(literal(settle(column, values), name) for column in columns)
                lines.append(f"INSERT INTO {table} ({', '.join(columns)}){overriding} VALUES\n    ({settled});")
        if name == "postgresql":
            lines.append("SELECT setval(pg_get_serial_sequence('chat_conversation', 'conversation_key'), 100);")
    backend.close()
    return "\n".join(lines) + "\n"


def settle(name: str, row: dict[str, Any]) -> Any:
    value = row[name]
    if value is None or name not in ("created_at", "updated_at", "expires_at"):
        return value
    if name == "expires_at":
        moment = START if row.get("message_id") in (None, "gone") else START.replace(year=2999)
    elif "message_id" in row:
        return value
    else:
        moment = START + dt.timedelta(days=1 if name == "updated_at" else 0, seconds=row["conversation_key"])
    if not isinstance(value, dt.datetime):
        return moment.isoformat()[:26] + "Z"
    return moment if value.tzinfo else moment.replace(tzinfo=None)


def literal(value: Any, backend: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("'", "''")
    return f"'{text}'" if backend in ("sqlite", "postgresql") else "'" + text.replace("\\", "\\\\") + "'"


def main(url: str) -> None:
    with open_repository(url, schema="migrate") as repository:
        if repository.find_conversation_ids():
            raise SystemExit("the database is not empty")
        fill(repository)
    backend = split_scheme(load_settings(url, {}, asynchronous=False).request.url)[0]
    path = SAMPLES / backend / f"V{latest_version(backend):04d}.sql"
    path.parent.mkdir(parents=True, exist_ok=True)
    sql = rows_as_sql(url)
    path.write_text(
        f"-- Rows as schema version {path.stem} stores them, made by make_samples.py. Never changed.\n{sql}"
    )
    with open_repository(url) as repository:
        for conversation_id in repository.find_conversation_ids():
            repository.delete_by_conversation_id(conversation_id)
        for conversation_id in repository.for_owner("Ada & Co. ☕").find_conversation_ids():
            repository.for_owner("Ada & Co. ☕").delete_by_conversation_id(conversation_id)
    load(url, sql)
    with open_repository(url) as repository:
        text = json.dumps(read(repository), ensure_ascii=True, indent=1, sort_keys=True)
    path.with_suffix(".json").write_text(text + "\n")
    print(f"{path}\n{path.with_suffix('.json')}")


def load(url: str, sql: str) -> None:
    settings = load_settings(url, {}, asynchronous=False)
    backend: Any = settings.plugin.open(settings.request)
    with backend.database.session() as session:
        if settings.plugin.name == "sqlite":
            from chatkeep.backends.relational.sqlite_migration import sqlite_statements

            for _, statement in sqlite_statements(sql):
                session.run(statement)
        else:
            session.run(sql)
    backend.close()


if __name__ == "__main__":
    main(sys.argv[1])
