-- chatkeep, SQL Server, version 1: conversations, messages, and the history of this schema.
-- Applied by `chatkeep migrate`, by Flyway, or by hand: sqlcmd -b -d <database> -i V0001__chat_memory.sql
-- The tables go to the account's default schema. The database must have READ_COMMITTED_SNAPSHOT ON.

-- An error ends what runs, and undoes its transaction. The others are the condition for the indexes below.
SET XACT_ABORT ON;
SET ANSI_NULLS ON;
SET ANSI_PADDING ON;
SET ANSI_WARNINGS ON;
SET ARITHABORT ON;
SET CONCAT_NULL_YIELDS_NULL ON;
SET QUOTED_IDENTIFIER ON;
SET NUMERIC_ROUNDABORT OFF;
GO

CREATE TABLE chatkeep_schema_history (
    version     INT           NOT NULL,
    description NVARCHAR(255) NOT NULL,
    checksum    VARCHAR(64)   NULL,                      -- SHA-256 of the file; null: applied by hand
    applied_at  DATETIME2(6)  NOT NULL,                  -- UTC, as all times here
    success     BIT           NOT NULL,
    CONSTRAINT chatkeep_schema_history_pkey PRIMARY KEY (version)
);

-- Ids have up to 255 characters, of which some take two units of UTF-16. They are compared by their code, whatever the
-- collation of the database is.
-- The key of an index may have 1,700 bytes, an owner and an id together up to 2,040. So an index begins with a hash of the
-- owner, which tells owners apart as well, and the id follows in full: it is what a listing is ordered by.
-- Positions and versions count from 1 within a conversation. What the API shows is conversation_key * 2^30 + number,
-- so that a conversation that is deleted and made anew under its id never shows a number twice.
CREATE TABLE chat_conversation (
    conversation_key BIGINT        IDENTITY NOT NULL,
    owner            NVARCHAR(510) COLLATE Latin1_General_100_BIN2 NOT NULL,
    owner_hash       AS CAST(HASHBYTES('SHA2_256', owner) AS BINARY(32)) PERSISTED NOT NULL,
    conversation_id  NVARCHAR(510) COLLATE Latin1_General_100_BIN2 NOT NULL,
    title            NVARCHAR(510) NULL,
    metadata         NVARCHAR(MAX) NULL,                 -- a JSON object; null for {}
    created_at       DATETIME2(6)  NOT NULL,
    updated_at       DATETIME2(6)  NOT NULL,             -- the last change of the messages
    expires_at       DATETIME2(6)  NULL,                 -- the earliest expiry of a stored message
    last_position    BIGINT        NOT NULL DEFAULT 0,
    system_position  BIGINT        NULL,                 -- the newest system message
    context_start    BIGINT        NOT NULL DEFAULT 0,
    version          BIGINT        NOT NULL DEFAULT 0,
    message_count    BIGINT        NOT NULL DEFAULT 0,   -- stored messages, expired ones included
    parent_key       BIGINT        NULL,
    forked_at        BIGINT        NULL,
    CONSTRAINT chat_conversation_pkey PRIMARY KEY CLUSTERED (conversation_key),
    CONSTRAINT chat_conversation_identity UNIQUE (owner_hash, conversation_id),
    CONSTRAINT chat_conversation_numbers CHECK (last_position < 1073741824 AND version < 1073741824)
);

CREATE INDEX chat_conversation_updated ON chat_conversation (owner_hash, updated_at DESC, conversation_id);
CREATE INDEX chat_conversation_expiry ON chat_conversation (owner_hash, expires_at) WHERE expires_at IS NOT NULL;

-- No foreign key: every write goes through the lock of the conversation's row, and the check would cost each insert.
CREATE TABLE chat_message (
    conversation_key BIGINT        NOT NULL,
    position         BIGINT        NOT NULL,
    message_id       NVARCHAR(510) COLLATE Latin1_General_100_BIN2 NOT NULL,
    role             NVARCHAR(128) NOT NULL,
    content          NVARCHAR(MAX) NOT NULL,             -- the readable text
    body             NVARCHAR(MAX) NULL,                 -- JSON of what content doesn't hold; null for plain text
    token_count      INT           NULL,
    token_estimator  NVARCHAR(64)  NULL,                 -- who counted: name and version
    created_at       DATETIME2(6)  NOT NULL,
    expires_at       DATETIME2(6)  NULL,
    CONSTRAINT chat_message_pkey PRIMARY KEY CLUSTERED (conversation_key, position),
    CONSTRAINT chat_message_identity UNIQUE (conversation_key, message_id)
);

CREATE INDEX chat_message_expiry ON chat_message (conversation_key, expires_at) WHERE expires_at IS NOT NULL;

-- Thousands of row locks must not become one of the table: replacing a long conversation would hold up all the others.
ALTER TABLE chat_message SET (LOCK_ESCALATION = DISABLE);

INSERT INTO chatkeep_schema_history (version, description, checksum, applied_at, success)
VALUES (1, 'chat memory', NULL, SYSUTCDATETIME(), 1);
