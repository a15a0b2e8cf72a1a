-- chatkeep, PostgreSQL, vectors, version 1: optional, beside the tables of conversations and messages.
-- Applied by `chatkeep migrate --vectors`, by Flyway, or by hand: psql -v ON_ERROR_STOP=1 -1 -f …
-- Needs pgvector on the server. Where the extension is not in the database yet, it is made in the first schema of the
-- search_path; to have it elsewhere, run CREATE EXTENSION vector SCHEMA … before.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE chatkeep_vector_history (
    version     integer     NOT NULL PRIMARY KEY,
    description text        NOT NULL,
    checksum    text,                                -- SHA-256 of the file; null: applied by hand
    applied_at  timestamptz NOT NULL,
    success     boolean     NOT NULL
);

-- The embedding models, each with the length of its vectors. Rows never change.
CREATE TABLE chat_vector_model (
    model_key  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text    COLLATE "C" NOT NULL CONSTRAINT chat_vector_model_identity UNIQUE,
    dimensions integer NOT NULL
);

-- No text of a message stands here. A message that goes takes its vectors with it, whoever deletes it.
CREATE TABLE chat_message_vector (
    conversation_key bigint  NOT NULL,
    model_key        integer NOT NULL REFERENCES chat_vector_model,
    position         bigint  NOT NULL,
    CONSTRAINT chat_message_vector_pkey PRIMARY KEY (conversation_key, model_key, position),
    CONSTRAINT chat_message_vector_message FOREIGN KEY (conversation_key, position)
        REFERENCES chat_message ON DELETE CASCADE
);

-- For the foreign key, which looks for a message's vectors without their model.
CREATE INDEX chat_message_vector_position ON chat_message_vector (conversation_key, position);

-- embedding, of length 1; null: the message has no text to embed. The extension may lie in any schema.
DO $$
BEGIN
    EXECUTE (SELECT format('ALTER TABLE chat_message_vector ADD COLUMN embedding %I.vector', n.nspname)
             FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector');
END $$;

INSERT INTO chatkeep_vector_history (version, description, checksum, applied_at, success)
VALUES (1, 'message vectors', NULL, now(), true);
