-- What the creator said stays with the model until it is answered: by a message that names
-- it, by a wake that ends in words, or by the creator, who closes it. `file` is the file of
-- the workspace that holds it whole, where the prompt shows its ends only.
ALTER TABLE inbox_messages ADD COLUMN answered_at INTEGER;
ALTER TABLE inbox_messages ADD COLUMN answered_by TEXT CHECK (answered_by IN ('reply', 'words', 'creator'));
ALTER TABLE inbox_messages ADD COLUMN file TEXT;
UPDATE inbox_messages SET answered_at = ended_at, answered_by = 'words' WHERE state = 'processed';
CREATE INDEX inbox_messages_open ON inbox_messages (seq) WHERE label = 'creator' AND answered_at IS NULL;

-- What sends a message is a call, a turn that ends in words, or a wake cycle that ends: each
-- sends one.
ALTER TABLE outbox_messages RENAME COLUMN call TO cause;

-- The turns before this one are shown with their results shortened.
ALTER TABLE automaton ADD COLUMN shortened_until INTEGER NOT NULL DEFAULT 1 CHECK (shortened_until >= 1);

-- What the turns before `upto` did, summed up, since the prompt does not show them any more.
-- The label is the lowest of what it was made of.
CREATE TABLE digests (
    upto   INTEGER PRIMARY KEY,
    body   TEXT    NOT NULL CHECK (json_valid(body)),
    label  TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'runtime',
    at     INTEGER NOT NULL
) STRICT;

-- How the history of a prompt was shown, and the layers before it; missing where the prompt
-- is older than these columns.
ALTER TABLE prompts ADD COLUMN shown TEXT CHECK (json_valid(shown));
ALTER TABLE prompts ADD COLUMN open_sha256 BLOB CHECK (length(open_sha256) = 32);
ALTER TABLE prompts ADD COLUMN open_chars INTEGER;
ALTER TABLE prompts ADD COLUMN open_tokens INTEGER;
ALTER TABLE prompts ADD COLUMN digest_sha256 BLOB CHECK (length(digest_sha256) = 32);
ALTER TABLE prompts ADD COLUMN digest_chars INTEGER;
ALTER TABLE prompts ADD COLUMN digest_tokens INTEGER;
