-- Rows of a kilobyte in a table without row ids take a page of their own each, so
-- calls get row ids.
CREATE TABLE tool_calls_now (
    id            TEXT    PRIMARY KEY,
    turn          TEXT    NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    ordinal       INTEGER NOT NULL,
    provider_id   TEXT,
    tool          TEXT    NOT NULL,
    arguments     TEXT    NOT NULL,
    label         TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source        TEXT    NOT NULL,
    effect        TEXT    NOT NULL CHECK (effect IN ('observes', 'mutates')),
    status        TEXT    NOT NULL CHECK (status IN ('planned', 'started', 'done', 'failed', 'refused', 'invalid', 'skipped', 'unknown', 'not_started')),
    result        TEXT,
    result_label  TEXT    CHECK (result_label IN ('creator', 'self', 'tool', 'peer', 'web')),
    result_source TEXT,
    started_at    INTEGER,
    duration_ms   INTEGER CHECK (duration_ms >= 0),
    UNIQUE (turn, ordinal),
    CHECK ((status IN ('planned', 'started')) = (result IS NULL)),
    CHECK ((result IS NULL) = (result_label IS NULL) AND (result IS NULL) = (result_source IS NULL)),
    CHECK ((status IN ('started', 'done', 'failed', 'unknown')) = (started_at IS NOT NULL))
) STRICT;
INSERT INTO tool_calls_now SELECT * FROM tool_calls ORDER BY id;
DROP TABLE tool_calls;
ALTER TABLE tool_calls_now RENAME TO tool_calls;

-- The rules that are asked are nearly always the same ones: each list of them is kept
-- once. A decision's link has the hash of the names, as before.
CREATE TABLE rule_sets (
    id     INTEGER PRIMARY KEY,
    names  TEXT    NOT NULL UNIQUE CHECK (json_valid(names)),
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'policy'
) STRICT;
INSERT INTO rule_sets (names) SELECT DISTINCT rules_evaluated FROM policy_decisions;
CREATE TRIGGER rule_sets_kept BEFORE DELETE ON rule_sets BEGIN SELECT RAISE(ABORT, 'sets of rules are never deleted'); END;
CREATE TRIGGER rule_sets_fixed BEFORE UPDATE ON rule_sets BEGIN SELECT RAISE(ABORT, 'sets of rules are never changed'); END;
CREATE TABLE policy_decisions_now (
    id              TEXT    PRIMARY KEY,
    turn            TEXT    NOT NULL,
    call            TEXT    NOT NULL UNIQUE,
    tool            TEXT    NOT NULL,
    args_sha256     TEXT,
    outcome         TEXT    NOT NULL CHECK (outcome IN ('allow', 'ask', 'deny')),
    code            TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    label           TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source          TEXT    NOT NULL DEFAULT 'policy',
    risk            TEXT    NOT NULL CHECK (risk IN ('safe', 'caution', 'dangerous', 'forbidden')),
    rules           INTEGER NOT NULL REFERENCES rule_sets (id),
    rules_triggered TEXT    NOT NULL CHECK (json_valid(rules_triggered)),
    at              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO policy_decisions_now
SELECT d.id, turn, call, tool, args_sha256, outcome, code, reason, d.label, d.source, risk, r.id, rules_triggered, at
FROM policy_decisions AS d JOIN rule_sets AS r ON r.names = d.rules_evaluated;
DROP TABLE policy_decisions;
ALTER TABLE policy_decisions_now RENAME TO policy_decisions;
CREATE INDEX policy_decisions_turn ON policy_decisions (turn);
CREATE INDEX policy_decisions_at ON policy_decisions (at, outcome);
CREATE TRIGGER policy_decisions_kept BEFORE DELETE ON policy_decisions BEGIN SELECT RAISE(ABORT, 'decisions are never deleted'); END;
CREATE TRIGGER policy_decisions_fixed BEFORE UPDATE ON policy_decisions BEGIN SELECT RAISE(ABORT, 'decisions are never changed'); END;

-- No two links can have the same hash, since each holds the one before it: that needs
-- no index.
CREATE TABLE audit_chain_now (
    seq         INTEGER PRIMARY KEY,
    kind        TEXT    NOT NULL CHECK (kind IN ('decision', 'intent', 'outcome', 'payment')),
    subject_id  TEXT    NOT NULL,
    body_sha256 BLOB    NOT NULL CHECK (length(body_sha256) = 32),
    prev_sha256 BLOB    NOT NULL CHECK (length(prev_sha256) = 32),
    sha256      BLOB    NOT NULL CHECK (length(sha256) = 32),
    at          INTEGER NOT NULL,
    UNIQUE (kind, subject_id)
) STRICT;
INSERT INTO audit_chain_now SELECT * FROM audit_chain ORDER BY seq;
DROP TABLE audit_chain;
ALTER TABLE audit_chain_now RENAME TO audit_chain;
CREATE TRIGGER audit_chain_kept BEFORE DELETE ON audit_chain BEGIN SELECT RAISE(ABORT, 'links are never deleted'); END;
CREATE TRIGGER audit_chain_fixed BEFORE UPDATE ON audit_chain BEGIN SELECT RAISE(ABORT, 'links are never changed'); END;
