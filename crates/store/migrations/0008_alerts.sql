-- What is measured of a life, and what is wrong with it.

-- Snapshots of what is measured, for as long as a week.
CREATE TABLE metric_snapshots (
    at     INTEGER NOT NULL,
    name   TEXT    NOT NULL,
    value  INTEGER NOT NULL,
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'runtime',
    PRIMARY KEY (at, name)
) STRICT, WITHOUT ROWID;

-- One row for each time that a rule held; it is active until `cleared_at`. `fired_at`
-- is when the rule last fired, be it before this time.
CREATE TABLE alerts (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    rule       TEXT    NOT NULL CHECK (rule IN ('balance_below_reserve', 'heartbeat_high_failure_rate', 'policy_high_deny_rate', 'context_near_capacity', 'inference_budget_warning', 'zero_turns_last_hour')),
    state      TEXT    NOT NULL CHECK (state IN ('active', 'cleared')),
    message    TEXT    NOT NULL,
    label      TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source     TEXT    NOT NULL DEFAULT 'runtime',
    since      INTEGER NOT NULL,
    fired_at   INTEGER,
    times      INTEGER NOT NULL CHECK (times >= 0),
    cleared_at INTEGER,
    CHECK ((state = 'cleared') = (cleared_at IS NOT NULL)),
    CHECK (times = 0 OR fired_at IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX alerts_active ON alerts (rule) WHERE state = 'active';
CREATE INDEX alerts_rule ON alerts (rule, seq);

-- What the windows of the rules slide over.
CREATE INDEX heartbeat_history_at ON heartbeat_history (at, result);
CREATE INDEX policy_decisions_at ON policy_decisions (at, outcome);
CREATE INDEX turns_committed_at ON turns (committed_at) WHERE committed_at IS NOT NULL;
