-- Schedules that can be written as cron, who set them, and what they cost.

-- An enumeration that grew; the stored rows stay as they are.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''observe'', ''top_up''', '''observe'', ''schedule'', ''top_up''')
WHERE type = 'table' AND name = 'intents';
PRAGMA writable_schema = RESET;

-- `anchor_at` is the time that the schedule counts from: the last time that was
-- served. `next_run_at` is the one after it, `retry_at` the next try of a run that
-- failed, `attempt` the number of the retry that ran last. How it went so far is kept.
CREATE TABLE heartbeat_tasks (
    name         TEXT    PRIMARY KEY,
    task         TEXT    NOT NULL,
    cron         TEXT,
    zone         TEXT,
    interval_ms  INTEGER CHECK (interval_ms > 0),
    enabled      INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    origin       TEXT    NOT NULL CHECK (origin IN ('default', 'file', 'agent')),
    priority     INTEGER NOT NULL CHECK (priority >= 0),
    tier_minimum TEXT    NOT NULL CHECK (tier_minimum IN ('dead', 'critical', 'low_compute', 'normal', 'high')),
    timeout_ms   INTEGER NOT NULL CHECK (timeout_ms > 0),
    max_retries  INTEGER NOT NULL CHECK (max_retries >= 0),
    anchor_at    INTEGER NOT NULL,
    next_run_at  INTEGER NOT NULL,
    retry_at     INTEGER,
    attempt      INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    last_run_at  INTEGER,
    last_result  TEXT    CHECK (last_result IN ('success', 'failure', 'timeout', 'lost')),
    last_note    TEXT,
    label        TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source       TEXT    NOT NULL DEFAULT 'heartbeat',
    runs         INTEGER NOT NULL DEFAULT 0,
    failures     INTEGER NOT NULL DEFAULT 0,
    failing      INTEGER NOT NULL DEFAULT 0,
    fence        INTEGER NOT NULL DEFAULT 0,
    lease_run    TEXT,
    leased_at    INTEGER,
    leased_until INTEGER,
    CHECK ((cron IS NULL) <> (interval_ms IS NULL) AND (cron IS NULL) = (zone IS NULL)),
    CHECK ((lease_run IS NULL) = (leased_until IS NULL) AND (lease_run IS NULL) = (leased_at IS NULL))
) STRICT, WITHOUT ROWID;

INSERT INTO heartbeat_tasks (name, task, interval_ms, enabled, origin, priority, tier_minimum, timeout_ms, max_retries,
    anchor_at, next_run_at, last_run_at, last_result, last_note, label, source, runs, failures, failing, fence,
    lease_run, leased_at, leased_until)
SELECT name, name, interval_ms, enabled, 'default', 0, 'dead', timeout_ms, max_retries,
    coalesce(last_run_at, 0), coalesce(last_run_at + interval_ms, 0), last_run_at, last_result, last_note, label, source,
    runs, failures, failing, fence, lease_run, leased_at, leased_until
FROM heartbeat_schedule;
DROP TABLE heartbeat_schedule;
ALTER TABLE heartbeat_tasks RENAME TO heartbeat_schedule;

-- Whether a run woke the automaton: each task has a budget of wakes an hour.
ALTER TABLE heartbeat_history ADD COLUMN woke INTEGER NOT NULL DEFAULT 0 CHECK (woke IN (0, 1));
CREATE INDEX heartbeat_history_task ON heartbeat_history (task, seq);

-- What a task has woken the automaton for already. A row lasts while each run of the
-- task finds the same, and until `expires_at` at most.
CREATE TABLE heartbeat_dedup (
    key        TEXT    PRIMARY KEY,
    task       TEXT    NOT NULL,
    label      TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source     TEXT    NOT NULL DEFAULT 'heartbeat',
    at         INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
