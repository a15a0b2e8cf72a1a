"""What the harnesses of SQL engines share: looking into the tables with statements of their own."""

import abc
import contextlib
import datetime as dt
import socket
from collections.abc import Iterator
from typing import Any, ClassVar

from chatkeep.capabilities import MAX_MESSAGE_BYTES, Capabilities
from chatkeep.conformance import Harness
from tests.proxy import losing_commit

RELATIONAL = Capabilities(
    max_message_bytes=MAX_MESSAGE_BYTES,
    durable=True,
    shared_between_processes=True,
    atomic_replace=True,
    concurrent_appends=True,
    conditional_writes=True,
    stable_positions=True,
    conversation_metadata=True,
    ttl=True,
    purge=True,
    context=True,
    token_counts=True,
    bounded_cost=True,
)


class RelationalHarness(Harness):
    """A subclass says how to run a statement; `?` stands for a value."""

    shortest_ttl = dt.timedelta(milliseconds=200)
    ORPHANS: ClassVar[str] = """
        SELECT COUNT(*) FROM chat_message WHERE conversation_key NOT IN (SELECT conversation_key FROM chat_conversation)
    """

    @abc.abstractmethod
    def query(self, url: str, statement: str, *values: Any) -> list[Any]:
        """The rows of a statement in this namespace, committed."""

    def time(self, moment: dt.datetime) -> Any:
        """A time as the engine's columns hold it."""
        return moment

    def stored_messages(self, url: str, conversation_id: str) -> int:
        """Rows without a conversation count too: a deletion must not leave any."""
        of_conversation = self.query(
            url,
            "SELECT COUNT(*) FROM chat_message m JOIN chat_conversation c ON c.conversation_key = m.conversation_key "
            "WHERE c.conversation_id = ?",
            conversation_id,
        )
        return int(of_conversation[0][0]) + int(self.query(url, self.ORPHANS)[0][0])

    def stored_content(self, url: str, conversation_id: str) -> list[str]:
        rows = self.query(
            url,
            "SELECT m.content FROM chat_message m JOIN chat_conversation c ON c.conversation_key = m.conversation_key "
            "WHERE c.conversation_id = ? ORDER BY m.position",
            conversation_id,
        )
        return [row[0] for row in rows]

    def overwrite_message(self, url: str, message_id: str, **columns: Any) -> None:
        assignments = ", ".join(f"{column} = ?" for column in columns)
        self.query(url, f"UPDATE chat_message SET {assignments} WHERE message_id = ?", *columns.values(), message_id)

    def overwrite_conversation(self, url: str, conversation_id: str, **columns: Any) -> None:
        values = [self.time(value) if isinstance(value, dt.datetime) else value for value in columns.values()]
        assignments = ", ".join(f"{column} = ?" for column in columns)
        self.query(
            url, f"UPDATE chat_conversation SET {assignments} WHERE conversation_id = ?", *values, conversation_id
        )

    def schema_history(self, url: str) -> list[tuple[int, str | None]]:
        rows = self.query(url, "SELECT version, checksum FROM chatkeep_schema_history ORDER BY version")
        return [(row[0], row[1]) for row in rows]

    def change_schema_history(self, url: str, *, version: int, checksum: str | None) -> None:
        if version in dict(self.schema_history(url)):
            self.query(url, "UPDATE chatkeep_schema_history SET checksum = ? WHERE version = ?", checksum, version)
            return
        self.query(
            url,
            "INSERT INTO chatkeep_schema_history SELECT ?, 'a later step', ?, applied_at, success "
            "FROM chatkeep_schema_history WHERE version = 1",
            version,
            checksum,
        )

    @contextlib.contextmanager
    def within(self, url: str, create: list[str], remove: list[str]) -> Iterator[None]:
        """Statements before and after: a trigger that is there for a while."""
        for statement in create:
            self.query(url, statement)
        try:
            yield
        finally:
            for statement in remove:
                self.query(url, statement)


class ServerHarness(RelationalHarness):
    """An engine behind an address."""

    NOW: ClassVar[str]
    """The present time in UTC, as the engine spells it."""
    ANALYZE: ClassVar[str]
    """Brings the planner's knowledge of `{table}` up to date."""

    def losing_reply(self, url: str, text: str) -> contextlib.AbstractContextManager[str]:
        return losing_commit(url, text)

    def unreachable_url(self, password: str) -> str:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            return f"{self.backend}://someone:{password}@127.0.0.1:{taken.getsockname()[1]}/nowhere"

    def fill(self, url: str, conversation_id: str, messages: int, conversations: int = 0) -> None:
        digits = " UNION ".join(f"SELECT {digit} AS d" for digit in range(10))
        numbers = " + ".join(f"d{power}.d * {10**power}" for power in range(6))
        tables = " CROSS JOIN ".join(f"({digits}) d{power}" for power in range(6))
        series = f"(SELECT {numbers} + 1 AS n FROM {tables}) s"
        self.query(
            url,
            "INSERT INTO chat_message (conversation_key, position, message_id, role, content, created_at) "
            "SELECT c.conversation_key, c.last_position + s.n, CONCAT('filling-', s.n), 'user', 'filling', "
            f"{self.NOW} FROM chat_conversation c CROSS JOIN {series} "
            f"WHERE c.conversation_id = ? AND s.n <= {messages} ORDER BY s.n",
            conversation_id,
        )
        self.query(
            url,
            f"UPDATE chat_conversation SET last_position = last_position + {messages}, "
            f"message_count = message_count + {messages} WHERE conversation_id = ?",
            conversation_id,
        )
        self.query(
            url,
            "INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at) "
            f"SELECT '', CONCAT('filling-', s.n), {self.NOW}, {self.NOW} FROM {series} WHERE s.n <= {conversations}",
        )
        for table in ("chat_message", "chat_conversation"):
            self.query(url, self.ANALYZE.format(table=table))
