-- Notes of its own from wake to wake, and what the automaton thinks of itself.

-- Where there is a hash, the label is that of these very bytes, whatever the folder's is.
ALTER TABLE path_labels ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);

-- The worklog as a prompt showed it: what it was made of, and what is kept of its text.
ALTER TABLE turns ADD COLUMN worklog INTEGER REFERENCES prompt_parts (seq);
ALTER TABLE turns ADD COLUMN worklog_sha256 BLOB CHECK (length(worklog_sha256) = 32);
ALTER TABLE turns ADD COLUMN worklog_chars INTEGER CHECK (worklog_chars >= 0);
ALTER TABLE turns ADD COLUMN worklog_tokens INTEGER CHECK (worklog_tokens >= 0);

-- What prompts were made of goes with the last turn that shows it, found without looking at all.
CREATE INDEX turns_head ON turns (head) WHERE head IS NOT NULL;
CREATE INDEX turns_shown ON turns (shown) WHERE shown IS NOT NULL;
CREATE INDEX turns_worklog ON turns (worklog) WHERE worklog IS NOT NULL;
CREATE TRIGGER prompt_parts_gone AFTER DELETE ON turns WHEN old.asked_at IS NOT NULL BEGIN
    DELETE FROM prompt_parts WHERE seq IN (old.head, old.shown, old.worklog)
        AND NOT EXISTS (SELECT 1 FROM turns WHERE head = prompt_parts.seq)
        AND NOT EXISTS (SELECT 1 FROM turns WHERE shown = prompt_parts.seq)
        AND NOT EXISTS (SELECT 1 FROM turns WHERE worklog = prompt_parts.seq);
END;

-- What the automaton thinks of itself, version by version. `hash` is over the row and the hash of
-- the row before; of old versions `body` goes, and what is covered stays.
CREATE TABLE soul_history (
    version       INTEGER PRIMARY KEY CHECK (version >= 1),
    body          TEXT    CHECK (json_valid(body)),
    content_hash  BLOB    NOT NULL CHECK (length(content_hash) = 32),
    change_source TEXT    NOT NULL CHECK (change_source IN ('agent', 'human', 'system', 'genesis', 'reflection')),
    change_reason TEXT    NOT NULL,
    approved_by   TEXT,
    created_at    INTEGER NOT NULL,
    hash          BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE TRIGGER soul_history_fixed BEFORE UPDATE ON soul_history WHEN new.body IS NOT NULL
    OR (new.version, new.content_hash, new.change_source, new.change_reason, new.approved_by, new.created_at, new.hash)
        IS NOT (old.version, old.content_hash, old.change_source, old.change_reason, old.approved_by, old.created_at, old.hash)
BEGIN SELECT RAISE(ABORT, 'versions of a soul are never changed'); END;
CREATE TRIGGER soul_history_stays BEFORE DELETE ON soul_history BEGIN SELECT RAISE(ABORT, 'versions of a soul are never deleted'); END;

-- When it last looked at itself, and what it was advised then.
CREATE TABLE soul_reflection (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    at         INTEGER NOT NULL,
    suggestion TEXT    NOT NULL
) STRICT;
