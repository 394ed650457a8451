-- The first schema. Every time is integer milliseconds since the Unix epoch,
-- every amount of money integer microcents, every enumeration has a CHECK that
-- a test compares with the enumeration of the program. A row that holds text
-- says who wrote it: `label` (how far it is trusted) and `source` (who exactly).
-- What the runtime itself words has the label 'self'.

CREATE TABLE automaton (
    one                 INTEGER PRIMARY KEY CHECK (one = 1),
    id                  TEXT    NOT NULL,
    name                TEXT    NOT NULL,
    label               TEXT    NOT NULL DEFAULT 'creator' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source              TEXT    NOT NULL DEFAULT 'configuration',
    state               TEXT    NOT NULL CHECK (state IN ('setup', 'waking', 'running', 'low_compute', 'critical', 'sleeping', 'dead')),
    born_at             INTEGER NOT NULL,
    genesis_sha256      BLOB    NOT NULL CHECK (length(genesis_sha256) = 32),
    constitution_sha256 BLOB    NOT NULL CHECK (length(constitution_sha256) = 32),
    sleep_since         INTEGER,
    sleep_until         INTEGER,
    sleep_reason        TEXT    CHECK (sleep_reason IN ('asked', 'said', 'turn_limit', 'errors', 'idle', 'repetition', 'turns_used', 'shutdown', 'crash')),
    turns               INTEGER NOT NULL DEFAULT 0 CHECK (turns >= 0),
    history_from        INTEGER NOT NULL DEFAULT 1 CHECK (history_from >= 1),
    CHECK ((sleep_since IS NULL) = (sleep_until IS NULL) AND (sleep_since IS NULL) = (sleep_reason IS NULL))
) STRICT;

CREATE TABLE state_changes (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    from_state TEXT    NOT NULL CHECK (from_state IN ('setup', 'waking', 'running', 'low_compute', 'critical', 'sleeping', 'dead')),
    to_state   TEXT    NOT NULL CHECK (to_state IN ('setup', 'waking', 'running', 'low_compute', 'critical', 'sleeping', 'dead')),
    reason     TEXT    NOT NULL,
    label      TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source     TEXT    NOT NULL DEFAULT 'runtime',
    at         INTEGER NOT NULL
) STRICT;

-- One row a wake cycle. At most one is open.
CREATE TABLE sessions (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT    NOT NULL UNIQUE,
    opened_at INTEGER NOT NULL,
    ended_at  INTEGER,
    reason    TEXT    CHECK (reason IN ('asked', 'said', 'turn_limit', 'errors', 'idle', 'repetition', 'turns_used', 'shutdown', 'crash')),
    note      TEXT,
    label     TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source    TEXT    NOT NULL DEFAULT 'runtime',
    turns     INTEGER NOT NULL DEFAULT 0 CHECK (turns >= 0),
    CHECK ((ended_at IS NULL) = (reason IS NULL))
) STRICT;
CREATE UNIQUE INDEX sessions_open ON sessions ((1)) WHERE ended_at IS NULL;

CREATE TABLE wake_events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    cause       TEXT    NOT NULL CHECK (cause IN ('birth', 'timer', 'inbox', 'heartbeat', 'manual', 'recovery')),
    reason      TEXT    NOT NULL,
    label       TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source      TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    session     TEXT    REFERENCES sessions (id),
    consumed_at INTEGER,
    CHECK ((session IS NULL) = (consumed_at IS NULL))
) STRICT;
CREATE INDEX wake_events_pending ON wake_events (seq) WHERE session IS NULL;
CREATE INDEX wake_events_session ON wake_events (session) WHERE session IS NOT NULL;

CREATE TABLE turns (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    session      TEXT    NOT NULL REFERENCES sessions (id),
    status       TEXT    NOT NULL CHECK (status IN ('open', 'judged', 'committed', 'abandoned')),
    thought      TEXT    NOT NULL DEFAULT '',
    label        TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source       TEXT    NOT NULL DEFAULT 'model',
    opened_at    INTEGER NOT NULL,
    judged_at    INTEGER,
    committed_at INTEGER,
    ingest       TEXT    NOT NULL DEFAULT 'none' CHECK (ingest IN ('none', 'owed', 'done')),
    CHECK ((status IN ('judged', 'committed')) = (judged_at IS NOT NULL)),
    CHECK ((status = 'committed') = (committed_at IS NOT NULL)),
    CHECK ((status = 'committed') = (ingest <> 'none'))
) STRICT;
CREATE INDEX turns_session ON turns (session);
CREATE INDEX turns_unfinished ON turns (seq) WHERE status IN ('open', 'judged');
CREATE INDEX turns_owed ON turns (seq) WHERE ingest = 'owed';

-- A message is claimed by a turn until the turn is committed or given up. The
-- claim is stale when the turn is abandoned, or still open after the lease.
CREATE TABLE inbox_messages (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    dedup       TEXT    UNIQUE CHECK (length(dedup) <= 200),
    body        TEXT    NOT NULL,
    label       TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source      TEXT    NOT NULL,
    state       TEXT    NOT NULL DEFAULT 'received' CHECK (state IN ('received', 'in_progress', 'processed', 'failed')),
    received_at INTEGER NOT NULL,
    -- How often it was claimed; how many of these it failed by itself; how many
    -- ended with the death of the process.
    claims      INTEGER NOT NULL DEFAULT 0 CHECK (claims >= 0),
    attempts    INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    crashes     INTEGER NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    turn        TEXT    REFERENCES turns (id) ON DELETE SET NULL,
    lease_until INTEGER,
    ended_at    INTEGER,
    CHECK ((state = 'in_progress') = (lease_until IS NOT NULL)),
    CHECK (state <> 'in_progress' OR turn IS NOT NULL),
    CHECK ((state IN ('processed', 'failed')) = (ended_at IS NOT NULL))
) STRICT;
CREATE INDEX inbox_messages_state ON inbox_messages (state, seq);
CREATE INDEX inbox_messages_turn ON inbox_messages (turn) WHERE turn IS NOT NULL;

-- What a turn answers: a message of the inbox, which holds the text and its
-- origin, or a text of its own.
CREATE TABLE turn_inputs (
    turn    TEXT    NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    message TEXT    REFERENCES inbox_messages (id),
    body    TEXT,
    label   TEXT    CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source  TEXT,
    PRIMARY KEY (turn, ordinal),
    CHECK ((message IS NULL) = (body IS NOT NULL)),
    CHECK ((body IS NULL) = (label IS NULL) AND (body IS NULL) = (source IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_inputs_message ON turn_inputs (message) WHERE message IS NOT NULL;

-- `label` and `source` tell who wrote the arguments, `result_*` who the result.
CREATE TABLE tool_calls (
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
) STRICT, WITHOUT ROWID;

-- The audit: these four tables are only ever added to, and outlive the turns
-- that they tell of; so they name turns and calls without a foreign key.
CREATE TABLE policy_decisions (
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
    rules_evaluated TEXT    NOT NULL CHECK (json_valid(rules_evaluated)),
    rules_triggered TEXT    NOT NULL CHECK (json_valid(rules_triggered)),
    at              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX policy_decisions_turn ON policy_decisions (turn);

CREATE TABLE intents (
    id      TEXT    PRIMARY KEY,
    call    TEXT    NOT NULL,
    ordinal INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('exec', 'read_path', 'write_path', 'message', 'remember', 'recall', 'sleep', 'observe')),
    body    TEXT    NOT NULL CHECK (json_valid(body)),
    label   TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    UNIQUE (call, ordinal)
) STRICT, WITHOUT ROWID;

-- How each planned call ended. The result itself may be pruned with its turn;
-- its hash stays.
CREATE TABLE call_outcomes (
    call          TEXT    PRIMARY KEY,
    status        TEXT    NOT NULL CHECK (status IN ('done', 'failed', 'skipped', 'unknown', 'not_started')),
    result_sha256 BLOB    NOT NULL CHECK (length(result_sha256) = 32),
    label         TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source        TEXT    NOT NULL,
    duration_ms   INTEGER NOT NULL CHECK (duration_ms >= 0),
    at            INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_chain (
    seq         INTEGER PRIMARY KEY,
    kind        TEXT    NOT NULL CHECK (kind IN ('decision', 'intent', 'outcome')),
    subject_id  TEXT    NOT NULL,
    body_sha256 BLOB    NOT NULL CHECK (length(body_sha256) = 32),
    prev_sha256 BLOB    NOT NULL CHECK (length(prev_sha256) = 32),
    sha256      BLOB    NOT NULL UNIQUE CHECK (length(sha256) = 32),
    at          INTEGER NOT NULL,
    UNIQUE (kind, subject_id)
) STRICT;

-- How long the chain is and how it ends, kept apart so that a cut tail is found.
CREATE TABLE audit_head (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    links  INTEGER NOT NULL CHECK (links >= 0),
    sha256 BLOB    NOT NULL CHECK (length(sha256) = 32)
) STRICT;
INSERT INTO audit_head (one, links, sha256) VALUES (1, 0, zeroblob(32));

CREATE TRIGGER policy_decisions_kept BEFORE DELETE ON policy_decisions BEGIN SELECT RAISE(ABORT, 'decisions are never deleted'); END;
CREATE TRIGGER policy_decisions_fixed BEFORE UPDATE ON policy_decisions BEGIN SELECT RAISE(ABORT, 'decisions are never changed'); END;
CREATE TRIGGER intents_kept BEFORE DELETE ON intents BEGIN SELECT RAISE(ABORT, 'intents are never deleted'); END;
CREATE TRIGGER intents_fixed BEFORE UPDATE ON intents BEGIN SELECT RAISE(ABORT, 'intents are never changed'); END;
CREATE TRIGGER call_outcomes_kept BEFORE DELETE ON call_outcomes BEGIN SELECT RAISE(ABORT, 'outcomes are never deleted'); END;
CREATE TRIGGER call_outcomes_fixed BEFORE UPDATE ON call_outcomes BEGIN SELECT RAISE(ABORT, 'outcomes are never changed'); END;
CREATE TRIGGER audit_chain_kept BEFORE DELETE ON audit_chain BEGIN SELECT RAISE(ABORT, 'links are never deleted'); END;
CREATE TRIGGER audit_chain_fixed BEFORE UPDATE ON audit_chain BEGIN SELECT RAISE(ABORT, 'links are never changed'); END;

-- What each answer of a model used. The ledger outlives the turns.
CREATE TABLE inference_costs (
    turn              TEXT    PRIMARY KEY,
    model             TEXT    NOT NULL,
    label             TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source            TEXT    NOT NULL DEFAULT 'provider',
    prompt_tokens     INTEGER NOT NULL CHECK (prompt_tokens >= 0),
    cached_tokens     INTEGER NOT NULL CHECK (cached_tokens >= 0),
    completion_tokens INTEGER NOT NULL CHECK (completion_tokens >= 0),
    cost_microcents   INTEGER NOT NULL CHECK (cost_microcents >= 0),
    first_token_ms    INTEGER NOT NULL,
    total_ms          INTEGER NOT NULL,
    at                INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox_messages (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT    NOT NULL UNIQUE,
    call      TEXT    NOT NULL UNIQUE,
    recipient TEXT    NOT NULL CHECK (recipient IN ('creator')),
    body      TEXT    NOT NULL,
    label     TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source    TEXT    NOT NULL,
    reply_to  TEXT,
    at        INTEGER NOT NULL
) STRICT;

CREATE TABLE semantic_memory (
    seq                INTEGER PRIMARY KEY AUTOINCREMENT,
    id                 TEXT    NOT NULL UNIQUE,
    category           TEXT    NOT NULL,
    key                TEXT    NOT NULL,
    value              TEXT    NOT NULL,
    label              TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source             TEXT    NOT NULL,
    confidence_percent INTEGER NOT NULL CHECK (confidence_percent BETWEEN 0 AND 100),
    turn               TEXT,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    UNIQUE (category, key)
) STRICT;
CREATE INDEX semantic_memory_updated ON semantic_memory (updated_at, seq);

CREATE VIRTUAL TABLE semantic_memory_words USING fts5 (category, key, value, content = 'semantic_memory', content_rowid = 'seq');
CREATE TRIGGER semantic_memory_added AFTER INSERT ON semantic_memory BEGIN
    INSERT INTO semantic_memory_words (rowid, category, key, value) VALUES (new.seq, new.category, new.key, new.value);
END;
CREATE TRIGGER semantic_memory_changed AFTER UPDATE ON semantic_memory BEGIN
    INSERT INTO semantic_memory_words (semantic_memory_words, rowid, category, key, value) VALUES ('delete', old.seq, old.category, old.key, old.value);
    INSERT INTO semantic_memory_words (rowid, category, key, value) VALUES (new.seq, new.category, new.key, new.value);
END;
CREATE TRIGGER semantic_memory_removed AFTER DELETE ON semantic_memory BEGIN
    INSERT INTO semantic_memory_words (semantic_memory_words, rowid, category, key, value) VALUES ('delete', old.seq, old.category, old.key, old.value);
END;

-- `fence` counts leases, so that a run whose lease expired cannot report for
-- the one that followed it.
CREATE TABLE heartbeat_schedule (
    name         TEXT    PRIMARY KEY,
    interval_ms  INTEGER NOT NULL CHECK (interval_ms > 0),
    enabled      INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    timeout_ms   INTEGER NOT NULL CHECK (timeout_ms > 0),
    max_retries  INTEGER NOT NULL CHECK (max_retries >= 0),
    last_run_at  INTEGER,
    next_run_at  INTEGER,
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
    CHECK ((lease_run IS NULL) = (leased_until IS NULL) AND (lease_run IS NULL) = (leased_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE heartbeat_history (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    run         TEXT    NOT NULL UNIQUE,
    task        TEXT    NOT NULL,
    result      TEXT    NOT NULL CHECK (result IN ('success', 'failure', 'timeout', 'lost')),
    note        TEXT    NOT NULL,
    label       TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source      TEXT    NOT NULL DEFAULT 'heartbeat',
    duration_ms INTEGER NOT NULL CHECK (duration_ms >= 0),
    at          INTEGER NOT NULL
) STRICT;
