"""The SQL that every engine of the family understands, with `:name` for values.

`{now}` and `{moment}` are the present time of the server (for SQLite of this process); `{first}` ends a statement that
gives the first `{limit}` rows; `{lock_hint}` and `{lock}` make a read lock its row, behind the table's name or at the
end, as the engine wants it. Dialects override single statements.

Numbers of positions and versions in the tables count from 1 within a conversation; the public ones are
`conversation_key * NUMBERS + number`, so that none is used again when an id is deleted and made anew.
"""

from __future__ import annotations

import re

NUMBERS = 2**30
"""Positions and versions per conversation: a billion, checked by the tables. 2^33 conversations then fit 63 bits."""

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")


class Statement(str):
    """A statement as the driver takes it."""

    shown: str
    """With `:name` for the values: what the log shows."""
    names: tuple[str, ...] | None
    """The values' names in order, for a driver that takes them by position; None for one that takes them by name."""

    def __new__(cls, text: str, shown: str, names: tuple[str, ...] | None = None) -> Statement:
        made = super().__new__(cls, text)
        made.shown, made.names = shown, names
        return made


def compile_statement(text: str, paramstyle: str, **fragments: str) -> Statement:
    """The statement in a driver's paramstyle, its `{fragments}` filled in, on one line."""
    for name, fragment in {**fragments, "numbers": str(NUMBERS)}.items():
        text = text.replace("{" + name + "}", fragment)
    text = " ".join(text.split())
    names = tuple(_PARAMETER.findall(text))
    if paramstyle == "named":
        return Statement(text, text)
    if paramstyle == "pyformat":
        compiled = _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))
        return Statement(compiled, compiled)
    if paramstyle == "format":
        return Statement(_PARAMETER.sub("%s", text.replace("%", "%%")), text, names)
    if paramstyle == "qmark":
        return Statement(_PARAMETER.sub("?", text), text, names)
    raise ValueError(f"paramstyle {paramstyle!r} is not known here")


class Statements:
    """Each constant is one statement; a dialect subclasses and overrides. Verb and object make the name."""

    SELECT_CONVERSATION_IDS = (
        "SELECT conversation_id FROM chat_conversation WHERE owner = :owner ORDER BY conversation_id"
    )

    MESSAGE_COLUMNS = """
        m.message_id, m.role, m.content, m.body, m.created_at, m.token_count, m.expires_at,
        m.conversation_key * {numbers} + m.position
    """
    LIVE_MESSAGES = """
        SELECT {message_columns} FROM chat_message m
        WHERE m.conversation_key = (SELECT conversation_key FROM chat_conversation
                                    WHERE owner = :owner AND conversation_id = :conversation_id)
          AND (m.expires_at IS NULL OR m.expires_at > {moment})
    """
    SELECT_MESSAGES = LIVE_MESSAGES + " ORDER BY m.position"
    SELECT_NEWEST_MESSAGES = LIVE_MESSAGES + " ORDER BY m.position DESC {first}"
    # One statement, so that all is of one moment: the conversation with its system message, and the newest messages,
    # which have version 0. Those before the start of the context are left out by the reader: as a condition here it
    # would be a second bound of the scan, for which PostgreSQL may rather sort the whole.
    CONTEXT = """
        SELECT c.conversation_key * {numbers} + c.version, c.conversation_key * {numbers} + c.context_start,
               {message_columns}, m.token_estimator
        FROM chat_conversation c LEFT JOIN chat_message m
            ON m.conversation_key = c.conversation_key AND m.position = c.system_position
                AND m.position > c.context_start AND (m.expires_at IS NULL OR m.expires_at > {moment})
        WHERE c.owner = :owner AND c.conversation_id = :conversation_id
        UNION ALL
        SELECT * FROM (
            SELECT 0 AS version, 0 AS context_start, {message_columns} AS position, m.token_estimator
            FROM chat_message m
            WHERE m.conversation_key = (SELECT conversation_key FROM chat_conversation
                                        WHERE owner = :owner AND conversation_id = :conversation_id)
              {below} AND (m.expires_at IS NULL OR m.expires_at > {moment})
            ORDER BY m.position DESC {first}
        ) AS newest
    """
    SELECT_CONTEXT = CONTEXT.replace("{below}", "")
    SELECT_CONTEXT_BELOW = CONTEXT.replace("{below}", "AND m.position < :before - {number_base}")
    # :after and :before are public positions. The key is a scalar subquery and not a join, so that planners see one
    # value and scan the index on (key, position) between the bounds, in order, up to the limit.
    HISTORY = (
        LIVE_MESSAGES
        + """
        AND m.position > :after - {number_base} AND m.position < :before - {number_base}
        """
    )
    SELECT_HISTORY = HISTORY + " ORDER BY m.position {first}"
    SELECT_HISTORY_BACKWARDS = HISTORY + " ORDER BY m.position DESC {first}"
    NUMBER_BASE = """
        {numbers} * (SELECT conversation_key FROM chat_conversation
                      WHERE owner = :owner AND conversation_id = :conversation_id)
    """
    LOCK_CONVERSATION = """
        SELECT conversation_key, version, last_position, system_position, context_start, message_count, expires_at,
               {now}
        FROM chat_conversation {lock_hint} WHERE owner = :owner AND conversation_id = :conversation_id {lock}
    """
    LOCK_CONVERSATION_KEY = """
        SELECT conversation_key, version, last_position, system_position, context_start, message_count, expires_at,
               {now}
        FROM chat_conversation {lock_hint} WHERE conversation_key = :conversation_key {lock}
    """
    INSERT_CONVERSATION = """
        INSERT INTO chat_conversation (owner, conversation_id, created_at, updated_at)
        VALUES (:owner, :conversation_id, {now}, {now})
        ON CONFLICT (owner, conversation_id) DO NOTHING
    """
    UPDATE_CONVERSATION = """
        UPDATE chat_conversation
        SET version = :version, last_position = :last_position, system_position = :system_position,
            context_start = :context_start, message_count = :message_count, expires_at = :expires_at,
            updated_at = {now}
        WHERE conversation_key = :conversation_key
    """
    UPDATE_CONVERSATION_COUNT = """
        UPDATE chat_conversation
        SET message_count = :message_count,
            expires_at = (SELECT min(expires_at) FROM chat_message
                          WHERE conversation_key = :conversation_key AND expires_at IS NOT NULL)
        WHERE conversation_key = :conversation_key
    """
    INSERT_MESSAGE = """
        INSERT INTO chat_message
            (conversation_key, position, message_id, role, content, body, token_count, token_estimator, created_at,
             expires_at)
        VALUES (:conversation_key, :position, :message_id, :role, :content, :body, :token_count, :token_estimator,
                :created_at, :expires_at)
    """
    SELECT_STORED = """
        SELECT message_id, role, content, body, created_at, token_count, expires_at, position
        FROM chat_message WHERE conversation_key = :conversation_key AND message_id IN ({ids})
    """
    SELECT_STORED_EXPIRIES = """
        SELECT message_id, expires_at FROM chat_message
        WHERE conversation_key = :conversation_key AND message_id IN ({ids})
    """
    SELECT_EXPIRIES = """
        SELECT message_id, expires_at FROM chat_message
        WHERE conversation_key = :conversation_key AND (expires_at IS NULL OR expires_at > {moment})
    """
    # `{cases}` and `{positions}` hold a place for each message.
    UPDATE_COUNTS = """
        UPDATE chat_message SET token_estimator = :token_estimator, token_count = CASE position {cases} END
        WHERE conversation_key = :conversation_key AND position IN ({positions})
    """
    DELETE_MESSAGES = "DELETE FROM chat_message WHERE conversation_key = :conversation_key"
    DELETE_MESSAGES_BY_ID = (
        "DELETE FROM chat_message WHERE conversation_key = :conversation_key AND message_id IN ({ids})"
    )
    DELETE_EXPIRED = """
        DELETE FROM chat_message WHERE conversation_key = :conversation_key AND position IN
            (SELECT position FROM (SELECT position FROM chat_message
                WHERE conversation_key = :conversation_key AND expires_at <= :before
                ORDER BY expires_at {first}) AS expired)
    """
    DELETE_CONVERSATION = "DELETE FROM chat_conversation WHERE conversation_key = :conversation_key"

    # Expired messages are still counted in message_count; the index on (conversation_key, expires_at) counts them.
    LIVE_COUNT = """
        c.message_count - (SELECT count(*) FROM chat_message m
                           WHERE m.conversation_key = c.conversation_key AND m.expires_at <= {moment})
    """
    CONVERSATIONS = """
        SELECT c.conversation_id, c.owner, c.title, c.metadata, c.created_at, c.updated_at,
               c.conversation_key * {numbers} + c.version, {live_count}
        FROM chat_conversation c WHERE c.owner = :owner
    """
    SELECT_CONVERSATION = CONVERSATIONS + " AND c.conversation_id = :conversation_id"
    COUNT_MESSAGES = """
        SELECT {live_count} FROM chat_conversation c WHERE c.owner = :owner AND c.conversation_id = :conversation_id
    """
    SELECT_VERSION = """
        SELECT conversation_key * {numbers} + version FROM chat_conversation
        WHERE owner = :owner AND conversation_id = :conversation_id
    """
    UPDATE_TITLE = """
        UPDATE chat_conversation SET title = :title WHERE owner = :owner AND conversation_id = :conversation_id
    """
    UPDATE_METADATA = """
        UPDATE chat_conversation SET metadata = :metadata WHERE owner = :owner AND conversation_id = :conversation_id
    """
    LIST_BY_ID = CONVERSATIONS + " ORDER BY c.conversation_id {first}"
    LIST_BY_ID_AFTER = CONVERSATIONS + " AND c.conversation_id > :after_id ORDER BY c.conversation_id {first}"
    LIST_BY_UPDATE = CONVERSATIONS + " ORDER BY c.updated_at DESC, c.conversation_id {first}"
    # The first condition bounds the index scan, the second one decides among equal times.
    LIST_BY_UPDATE_AFTER = (
        CONVERSATIONS
        + """
        AND c.updated_at <= :after_time AND (c.updated_at < :after_time OR c.conversation_id > :after_id)
        ORDER BY c.updated_at DESC, c.conversation_id {first}
        """
    )
    SELECT_EXPIRED_CONVERSATIONS = """
        SELECT conversation_key FROM chat_conversation
        WHERE owner = :owner AND expires_at <= :before ORDER BY expires_at {first}
    """
    COUNT_EXPIRED = """
        SELECT count(*) FROM chat_conversation c JOIN chat_message m ON m.conversation_key = c.conversation_key
        WHERE c.owner = :owner AND c.expires_at <= :before AND m.expires_at <= :before
    """
    COUNT_EXPIRED_CONVERSATIONS = """
        SELECT count(*) FROM chat_conversation c
        WHERE c.owner = :owner AND c.expires_at <= :before AND NOT EXISTS
            (SELECT 1 FROM chat_message m WHERE m.conversation_key = c.conversation_key
                AND (m.expires_at IS NULL OR m.expires_at > :before))
    """
    SELECT_IDLE_CONVERSATIONS = """
        SELECT conversation_key FROM chat_conversation
        WHERE owner = :owner AND updated_at < :before ORDER BY updated_at {first}
    """
    SELECT_IDLE_CONVERSATION = """
        SELECT conversation_key, message_count FROM chat_conversation {lock_hint}
        WHERE conversation_key = :conversation_key AND updated_at < :before {lock}
    """
    COUNT_IDLE = """
        SELECT count(*), COALESCE(sum(message_count), 0) FROM chat_conversation
        WHERE owner = :owner AND updated_at < :before
    """
    SELECT_NOW = "SELECT {now}"

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


_SHARED = ("message_columns", "live_count", "number_base", "insert_rows", "message_rows")


def text_of(statements: type[Statements] | Statements, name: str) -> str:
    """A statement's raw text with its shared pieces filled in."""
    text: str = getattr(statements, name)
    for piece in (piece for piece in _SHARED if hasattr(statements, piece.upper())):
        text = text.replace("{" + piece + "}", getattr(statements, piece.upper()))
    return text
