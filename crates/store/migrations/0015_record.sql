-- What each decision was made under: the labels of what the turn answers and of what the
-- wake heard, whose authority that gives, the approval that it used, and how long it took.
-- Decisions from before have none of it, and their links are of the columns that they had.
ALTER TABLE policy_decisions ADD COLUMN input_label TEXT CHECK (input_label IN ('creator', 'self', 'tool', 'peer', 'web'));
ALTER TABLE policy_decisions ADD COLUMN heard_label TEXT CHECK (heard_label IN ('creator', 'self', 'tool', 'peer', 'web'));
ALTER TABLE policy_decisions ADD COLUMN authority TEXT CHECK (authority IN ('creator', 'self', 'external'));
ALTER TABLE policy_decisions ADD COLUMN approval TEXT;
ALTER TABLE policy_decisions ADD COLUMN latency_ms INTEGER CHECK (latency_ms >= 0);

-- Questions about calls, too: `subject` is the call that was not made, `tool` and
-- `arguments` (with sorted keys) say exactly which one would be, and `used_by` is the call
-- that was made in its place, once. `action_sha256` is what an answer is given to.
CREATE TABLE approvals_now (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL UNIQUE,
    kind          TEXT    NOT NULL CHECK (kind IN ('payment', 'call')),
    subject       TEXT    NOT NULL UNIQUE,
    tool          TEXT,
    arguments     TEXT    CHECK (arguments IS NULL OR json_valid(arguments)),
    action_sha256 TEXT    NOT NULL,
    summary       TEXT    NOT NULL,
    code          TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('waiting', 'approved', 'denied', 'lapsed', 'used')),
    label         TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source        TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    answered_at   INTEGER,
    used_by       TEXT,
    CHECK ((state = 'waiting') = (answered_at IS NULL)),
    CHECK ((kind = 'call') = (tool IS NOT NULL) AND (kind = 'call') = (arguments IS NOT NULL)),
    CHECK ((state = 'used') = (used_by IS NOT NULL) AND (kind = 'call' OR used_by IS NULL))
) STRICT;
INSERT INTO approvals_now (seq, id, kind, subject, action_sha256, summary, code, reason, state, label, source, at, expires_at, answered_at)
SELECT seq, id, kind, subject, '', summary, code, reason, state, label, source, at, expires_at, answered_at FROM approvals;
DROP TABLE approvals;
ALTER TABLE approvals_now RENAME TO approvals;
CREATE INDEX approvals_waiting ON approvals (seq) WHERE state = 'waiting';
CREATE INDEX approvals_granted ON approvals (seq) WHERE state = 'approved' AND kind = 'call';

-- What became of each question, and by whose hand: part of the audit chain.
CREATE TABLE approval_steps (
    id            TEXT    PRIMARY KEY,
    approval      TEXT    NOT NULL,
    step          TEXT    NOT NULL CHECK (step IN ('waiting', 'approved', 'denied', 'lapsed', 'used')),
    action_sha256 TEXT    NOT NULL,
    label         TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source        TEXT    NOT NULL,
    at            INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER approval_steps_kept BEFORE DELETE ON approval_steps BEGIN SELECT RAISE(ABORT, 'steps of approvals are never deleted'); END;
CREATE TRIGGER approval_steps_fixed BEFORE UPDATE ON approval_steps BEGIN SELECT RAISE(ABORT, 'steps of approvals are never changed'); END;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''outcome'', ''payment''', '''outcome'', ''payment'', ''approval''')
WHERE type = 'table' AND name = 'audit_chain';
PRAGMA writable_schema = RESET;
