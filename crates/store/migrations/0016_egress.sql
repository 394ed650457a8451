-- Requests of sandboxed commands: one row each, with the call of the command and with the
-- decision, which is in `policy_decisions` under the same id, and in the audit chain. The
-- last columns are what came of it; without them, that is not known, or it was refused.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''fetch_paid''', '''fetch_paid'', ''egress''')
WHERE type = 'table' AND name = 'intents';
PRAGMA writable_schema = RESET;

CREATE TABLE egress (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,
    call       TEXT    NOT NULL,
    method     TEXT    NOT NULL,
    origin     TEXT    NOT NULL,
    outcome    TEXT    NOT NULL CHECK (outcome IN ('allow', 'ask', 'deny')),
    code       TEXT    NOT NULL,
    label      TEXT    NOT NULL DEFAULT 'tool' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source     TEXT    NOT NULL DEFAULT 'exec',
    at         INTEGER NOT NULL,
    status     INTEGER CHECK (status BETWEEN 100 AND 999),
    bytes_up   INTEGER CHECK (bytes_up >= 0),
    bytes_down INTEGER CHECK (bytes_down >= 0),
    ended      TEXT    CHECK (ended IN ('done', 'broken', 'unreachable', 'late', 'address', 'greeting', 'idle', 'too_long', 'request_bytes', 'run_bytes', 'stopped')),
    ended_at   INTEGER,
    CHECK ((ended IS NULL) = (ended_at IS NULL) AND (ended IS NULL) = (bytes_up IS NULL) AND (ended IS NULL) = (bytes_down IS NULL)),
    CHECK (outcome = 'allow' OR ended IS NULL)
) STRICT;
