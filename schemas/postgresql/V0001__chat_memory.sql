-- chatkeep, PostgreSQL, version 1: conversations, messages, and the history of this schema.
-- Applied by `chatkeep migrate`, by Flyway, or by hand: psql -v ON_ERROR_STOP=1 -1 -f V0001__chat_memory.sql
-- The tables go to the first schema of the search_path. The database's encoding must be UTF8.

CREATE TABLE chatkeep_schema_history (
    version     integer     NOT NULL PRIMARY KEY,
    description text        NOT NULL,
    checksum    text,                                -- SHA-256 of the file; null: applied by hand
    applied_at  timestamptz NOT NULL,
    success     boolean     NOT NULL
);

-- Ids are compared byte by byte: COLLATE "C".
-- Positions and versions count from 1 within a conversation. What the API shows is conversation_key * 2^30 + number,
-- so that a conversation that is deleted and made anew under its id never shows a number twice.
CREATE TABLE chat_conversation (
    conversation_key bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner            text         COLLATE "C" NOT NULL,
    conversation_id  text         COLLATE "C" NOT NULL,
    title            text,
    metadata         text,                           -- a JSON object; null for {}
    created_at       timestamptz  NOT NULL,
    updated_at       timestamptz  NOT NULL,          -- the last change of the messages
    expires_at       timestamptz,                    -- the earliest expiry of a stored message
    last_position    bigint       NOT NULL DEFAULT 0,
    system_position  bigint,                         -- the newest system message
    context_start    bigint       NOT NULL DEFAULT 0,
    version          bigint       NOT NULL DEFAULT 0,
    message_count    bigint       NOT NULL DEFAULT 0, -- stored messages, expired ones included
    parent_key       bigint,
    forked_at        bigint,
    CONSTRAINT chat_conversation_identity UNIQUE (owner, conversation_id),
    CONSTRAINT chat_conversation_numbers CHECK (last_position < 1073741824 AND version < 1073741824)
);

CREATE INDEX chat_conversation_updated ON chat_conversation (owner, updated_at DESC, conversation_id);
CREATE INDEX chat_conversation_expiry ON chat_conversation (owner, expires_at) WHERE expires_at IS NOT NULL;

-- No foreign key: every write goes through the lock of the conversation's row, and the check would cost each insert.
CREATE TABLE chat_message (
    conversation_key bigint      NOT NULL,
    position         bigint      NOT NULL,
    message_id       text        COLLATE "C" NOT NULL,
    role             text        NOT NULL,
    content          text        NOT NULL,           -- the readable text
    body             text,                           -- JSON of what content doesn't hold; null for plain text
    token_count      integer,
    token_estimator  text,                           -- who counted: name and version
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz,
    CONSTRAINT chat_message_pkey PRIMARY KEY (conversation_key, position),
    CONSTRAINT chat_message_identity UNIQUE (conversation_key, message_id)
);

CREATE INDEX chat_message_expiry ON chat_message (conversation_key, expires_at) WHERE expires_at IS NOT NULL;

INSERT INTO chatkeep_schema_history (version, description, checksum, applied_at, success)
VALUES (1, 'chat memory', NULL, now(), true);
