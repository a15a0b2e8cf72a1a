-- chatkeep, SQLite, version 1: conversations, messages, and the history of this schema.
-- Applied by `chatkeep migrate`, or by hand, all or nothing:
--     sqlite3 -bail chat.db "BEGIN IMMEDIATE" ".read V0001__chat_memory.sql" "COMMIT"
-- Times are text of one width in UTC, such as 2026-11-30T17:51:59.123456Z, so that text order is time order.

CREATE TABLE chatkeep_schema_history (
    version     INTEGER NOT NULL PRIMARY KEY,
    description TEXT    NOT NULL,
    checksum    TEXT,                                -- SHA-256 of the file; null: applied by hand
    applied_at  TEXT    NOT NULL,
    success     INTEGER NOT NULL
);

-- Positions and versions count from 1 within a conversation. What the API shows is conversation_key * 2^30 + number,
-- so that a conversation that is deleted and made anew under its id never shows a number twice. AUTOINCREMENT: a key
-- is never used again.
CREATE TABLE chat_conversation (
    conversation_key INTEGER PRIMARY KEY AUTOINCREMENT,
    owner            TEXT    NOT NULL,
    conversation_id  TEXT    NOT NULL,
    title            TEXT,
    metadata         TEXT,                           -- a JSON object; null for {}
    created_at       TEXT    NOT NULL,
    updated_at       TEXT    NOT NULL,               -- the last change of the messages
    expires_at       TEXT,                           -- the earliest expiry of a stored message
    last_position    INTEGER NOT NULL DEFAULT 0,
    system_position  INTEGER,                        -- the newest system message
    context_start    INTEGER NOT NULL DEFAULT 0,
    version          INTEGER NOT NULL DEFAULT 0,
    message_count    INTEGER NOT NULL DEFAULT 0,     -- stored messages, expired ones included
    parent_key       INTEGER,
    forked_at        INTEGER,
    CONSTRAINT chat_conversation_identity UNIQUE (owner, conversation_id),
    CONSTRAINT chat_conversation_numbers CHECK (last_position < 1073741824 AND version < 1073741824)
);

CREATE INDEX chat_conversation_updated ON chat_conversation (owner, updated_at DESC, conversation_id);
CREATE INDEX chat_conversation_expiry ON chat_conversation (owner, expires_at) WHERE expires_at IS NOT NULL;

-- A rowid table on purpose: in a WITHOUT ROWID one, every search that passes a row of megabytes reads the whole of it.
CREATE TABLE chat_message (
    conversation_key INTEGER NOT NULL,
    position         INTEGER NOT NULL,
    message_id       TEXT    NOT NULL,
    role             TEXT    NOT NULL,
    content          TEXT    NOT NULL,               -- the readable text
    body             TEXT,                           -- JSON of what content doesn't hold; null for plain text
    token_count      INTEGER,
    token_estimator  TEXT,                           -- who counted: name and version
    created_at       TEXT    NOT NULL,
    expires_at       TEXT,
    CONSTRAINT chat_message_pkey PRIMARY KEY (conversation_key, position),
    CONSTRAINT chat_message_identity UNIQUE (conversation_key, message_id)
);

CREATE INDEX chat_message_expiry ON chat_message (conversation_key, expires_at) WHERE expires_at IS NOT NULL;

INSERT INTO chatkeep_schema_history (version, description, checksum, applied_at, success)
VALUES (1, 'chat memory', NULL, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'), 1);
