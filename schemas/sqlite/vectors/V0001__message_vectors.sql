-- chatkeep, SQLite, vectors, version 1: optional, beside the tables of conversations and messages.
-- Applied by `chatkeep migrate --vectors`, or by hand, all or nothing:
--     sqlite3 -bail chat.db "BEGIN IMMEDIATE" ".read V0001__message_vectors.sql" "COMMIT"

CREATE TABLE chatkeep_vector_history (
    version     INTEGER NOT NULL PRIMARY KEY,
    description TEXT    NOT NULL,
    checksum    TEXT,                                -- SHA-256 of the file; null: applied by hand
    applied_at  TEXT    NOT NULL,
    success     INTEGER NOT NULL
);

-- The embedding models, each with the length of its vectors. Rows never change.
CREATE TABLE chat_vector_model (
    model_key  INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL CONSTRAINT chat_vector_model_identity UNIQUE,
    dimensions INTEGER NOT NULL
);

-- No text of a message stands here. The numbers are 32-bit floats, little-endian, of length 1.
CREATE TABLE chat_message_vector (
    conversation_key INTEGER NOT NULL,
    model_key        INTEGER NOT NULL,
    position         INTEGER NOT NULL,
    embedding        BLOB,                           -- null: the message has no text to embed
    CONSTRAINT chat_message_vector_pkey PRIMARY KEY (conversation_key, model_key, position)
);

-- A message that goes takes its vectors with it, whoever deletes it and however: foreign keys are off by default.
CREATE TRIGGER chat_message_vector_delete AFTER DELETE ON chat_message
BEGIN
    DELETE FROM chat_message_vector
    WHERE conversation_key = old.conversation_key AND position = old.position
      AND model_key IN (SELECT model_key FROM chat_vector_model);
END;

INSERT INTO chatkeep_vector_history (version, description, checksum, applied_at, success)
VALUES (1, 'message vectors', NULL, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'), 1);
