-- chatkeep, MySQL, version 1: conversations, messages, and the history of this schema.
-- Applied by `chatkeep migrate`, by Flyway, or by hand: mysql <database> < V0001__chat_memory.sql
-- MySQL commits each of these statements by itself. All can run again, so that a file that died can be run anew.
-- Character set and collation are named here and don't depend on the database's: every text is kept, and ids are
-- compared code point by code point, without padding.

CREATE TABLE IF NOT EXISTS chatkeep_schema_history (
    version     INT          NOT NULL PRIMARY KEY,
    description VARCHAR(255) NOT NULL,
    checksum    CHAR(64),                            -- SHA-256 of the file; null: applied by hand
    applied_at  DATETIME(6)  NOT NULL,               -- UTC, as all times here
    success     BOOLEAN      NOT NULL                -- false: began and did not end
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin;

-- Positions and versions count from 1 within a conversation. What the API shows is conversation_key * 2^30 + number,
-- so that a conversation that is deleted and made anew under its id never shows a number twice.
CREATE TABLE IF NOT EXISTS chat_conversation (
    conversation_key BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    owner            VARCHAR(255) NOT NULL,
    conversation_id  VARCHAR(255) NOT NULL,
    title            VARCHAR(255),
    metadata         LONGTEXT,                       -- a JSON object; null for {}
    created_at       DATETIME(6)  NOT NULL,
    updated_at       DATETIME(6)  NOT NULL,          -- the last change of the messages
    expires_at       DATETIME(6),                    -- the earliest expiry of a stored message
    last_position    BIGINT       NOT NULL DEFAULT 0,
    system_position  BIGINT,                         -- the newest system message
    context_start    BIGINT       NOT NULL DEFAULT 0,
    version          BIGINT       NOT NULL DEFAULT 0,
    message_count    BIGINT       NOT NULL DEFAULT 0, -- stored messages, expired ones included
    parent_key       BIGINT,
    forked_at        BIGINT,
    CONSTRAINT chat_conversation_identity UNIQUE (owner, conversation_id),
    CONSTRAINT chat_conversation_numbers CHECK (last_position < 1073741824 AND version < 1073741824),
    INDEX chat_conversation_updated (owner, updated_at DESC, conversation_id),
    INDEX chat_conversation_expiry (owner, expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin;

-- Clustered by its primary key: a conversation's messages lie side by side, in order.
-- No foreign key: every write goes through the lock of the conversation's row, and the check would cost each insert.
CREATE TABLE IF NOT EXISTS chat_message (
    conversation_key BIGINT       NOT NULL,
    position         BIGINT       NOT NULL,
    message_id       VARCHAR(255) NOT NULL,
    role             VARCHAR(64)  NOT NULL,
    content          LONGTEXT     NOT NULL,          -- the readable text
    body             LONGTEXT,                       -- JSON of what content doesn't hold; null for plain text
    token_count      INT,
    token_estimator  VARCHAR(64),                    -- who counted: name and version
    created_at       DATETIME(6)  NOT NULL,
    expires_at       DATETIME(6),
    PRIMARY KEY (conversation_key, position),
    CONSTRAINT chat_message_identity UNIQUE (conversation_key, message_id),
    INDEX chat_message_expiry (conversation_key, expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin;

-- The row is there already, with success = false, where `chatkeep migrate` runs this file.
INSERT INTO chatkeep_schema_history (version, description, checksum, applied_at, success)
VALUES (1, 'chat memory', NULL, UTC_TIMESTAMP(6), TRUE)
ON DUPLICATE KEY UPDATE success = TRUE;
