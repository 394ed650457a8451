-- Every time is integer milliseconds since the Unix epoch, every amount of money integer
-- microcents. A closed enumeration (a state, a label) has a CHECK that a test compares with the
-- enumeration of the program; one that features add to is checked by the codec alone. A row
-- whose text somebody else may have written says who: `label` (how far it is trusted) and
-- `source` (who exactly). What has no such columns the runtime words, or who sends it here:
-- the program's own configuration, its policy, a provider's counts.

-- One row. Bookings after `losses_from` count towards the stop-loss: the creator, or money,
-- that wakes a hibernating automaton gives it a new start. `unattended_since` is where the ledger
-- stood when the creator last called, or when the automaton last had to rest for what it thought
-- since, and `rests` how often it had to since that call. The turns before `shortened_until` are
-- shown with their results shortened, those before `arguments_until` with the arguments of their
-- calls, those before `history_from` not at all; `move_told` says that the model was told that one of
-- these places will move. `chosen_model` thinks in the
-- usual one's place, by the choice of `chosen_by`.
CREATE TABLE automaton (
    one                 INTEGER PRIMARY KEY CHECK (one = 1),
    id                  TEXT    NOT NULL,
    name                TEXT    NOT NULL,
    state               TEXT    NOT NULL CHECK (state IN ('setup', 'waking', 'running', 'low_compute', 'critical', 'sleeping', 'hibernating', 'dead')),
    born_at             INTEGER NOT NULL,
    genesis_sha256      BLOB    NOT NULL CHECK (length(genesis_sha256) = 32),
    constitution_sha256 BLOB    NOT NULL CHECK (length(constitution_sha256) = 32),
    sleep_since         INTEGER,
    sleep_until         INTEGER,
    sleep_reason        TEXT,
    turns               INTEGER NOT NULL DEFAULT 0 CHECK (turns >= 0),
    history_from        INTEGER NOT NULL DEFAULT 1 CHECK (history_from >= 1),
    losses_from         INTEGER NOT NULL DEFAULT 0 CHECK (losses_from >= 0),
    unattended_since        INTEGER NOT NULL DEFAULT 0 CHECK (unattended_since >= 0),
    rests               INTEGER NOT NULL DEFAULT 0 CHECK (rests >= 0),
    shortened_until     INTEGER NOT NULL DEFAULT 1 CHECK (shortened_until >= 1),
    arguments_until     INTEGER NOT NULL DEFAULT 1 CHECK (arguments_until >= 1),
    move_told           INTEGER NOT NULL DEFAULT 0 CHECK (move_told IN (0, 1)),
    chosen_model        TEXT,
    chosen_by           TEXT    CHECK (chosen_by IN ('creator', 'self')),
    CHECK ((sleep_until IS NULL OR sleep_since IS NOT NULL) AND (sleep_since IS NULL) = (sleep_reason IS NULL))
) STRICT;

CREATE TABLE state_changes (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    from_state TEXT    NOT NULL CHECK (from_state IN ('setup', 'waking', 'running', 'low_compute', 'critical', 'sleeping', 'hibernating', 'dead')),
    to_state   TEXT    NOT NULL CHECK (to_state IN ('setup', 'waking', 'running', 'low_compute', 'critical', 'sleeping', 'hibernating', 'dead')),
    reason     TEXT    NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

-- One row a wake cycle. At most one is open.
CREATE TABLE sessions (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT    NOT NULL UNIQUE,
    opened_at INTEGER NOT NULL,
    ended_at  INTEGER,
    reason    TEXT,
    note      TEXT,
    turns     INTEGER NOT NULL DEFAULT 0 CHECK (turns >= 0),
    CHECK ((ended_at IS NULL) = (reason IS NULL))
) STRICT;
CREATE UNIQUE INDEX sessions_open ON sessions ((1)) WHERE ended_at IS NULL;

CREATE TABLE wake_events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    cause       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    label       TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source      TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    session     INTEGER REFERENCES sessions (seq),
    consumed_at INTEGER,
    waited      INTEGER NOT NULL DEFAULT 0 CHECK (waited IN (0, 1)),
    CHECK ((session IS NULL) = (consumed_at IS NULL))
) STRICT;
CREATE INDEX wake_events_pending ON wake_events (seq) WHERE session IS NULL;
CREATE INDEX wake_events_session ON wake_events (session) WHERE session IS NOT NULL;

-- One row a turn: what its model was asked with, what it answered and used, and how it went on.
--
-- `voice` is the label of the words with which a turn ends its wake, and none where its words
-- are only thought: they are delivered by whoever commits it, also after a crash.
--
-- A prompt is not stored whole, but so that it can be shown later: `head` has the layers that stay
-- the same from turn to turn, `moment` is the one layer of a turn that nothing else in the record
-- holds, `shown` how its history was shown; what the record can give again is kept as its hash and
-- its size, and an empty layer has no hash. `asked_at` is when the model was asked.
CREATE TABLE turns (
    seq               INTEGER PRIMARY KEY AUTOINCREMENT,
    id                TEXT    NOT NULL UNIQUE,
    session           INTEGER NOT NULL REFERENCES sessions (seq),
    status            TEXT    NOT NULL CHECK (status IN ('open', 'judged', 'committed', 'abandoned')),
    thought           TEXT    NOT NULL DEFAULT '',
    opened_at         INTEGER NOT NULL,
    judged_at         INTEGER,
    committed_at      INTEGER,
    ingest            TEXT    NOT NULL DEFAULT 'none' CHECK (ingest IN ('none', 'owed', 'done')),
    voice             TEXT    CHECK (voice IN ('creator', 'self', 'tool', 'peer', 'web')),
    model             TEXT,
    choice            TEXT,
    prompt_tokens     INTEGER CHECK (prompt_tokens >= 0),
    cached_tokens     INTEGER CHECK (cached_tokens >= 0),
    completion_tokens INTEGER CHECK (completion_tokens >= 0),
    cost_microcents   INTEGER CHECK (cost_microcents >= 0),
    estimated         INTEGER NOT NULL DEFAULT 0 CHECK (estimated IN (0, 1)),
    first_token_ms    INTEGER,
    total_ms          INTEGER,
    -- The word of the server for the end of the answer, where its meaning is not known.
    unknown_end       TEXT,
    asked_at          INTEGER,
    head              INTEGER REFERENCES prompt_parts (seq),
    moment            TEXT,
    history_from      INTEGER,
    shown             INTEGER REFERENCES prompt_parts (seq),
    open_sha256       BLOB       CHECK (length(open_sha256) = 32),
    open_chars        INTEGER CHECK (open_chars >= 0),
    open_tokens       INTEGER CHECK (open_tokens >= 0),
    digest_sha256     BLOB       CHECK (length(digest_sha256) = 32),
    digest_chars      INTEGER CHECK (digest_chars >= 0),
    digest_tokens     INTEGER CHECK (digest_tokens >= 0),
    history_sha256    BLOB       CHECK (length(history_sha256) = 32),
    history_chars     INTEGER CHECK (history_chars >= 0),
    history_tokens    INTEGER CHECK (history_tokens >= 0),
    memory_sha256     BLOB       CHECK (length(memory_sha256) = 32),
    memory_chars      INTEGER CHECK (memory_chars >= 0),
    memory_tokens     INTEGER CHECK (memory_tokens >= 0),
    input_sha256      BLOB       CHECK (length(input_sha256) = 32),
    input_chars       INTEGER CHECK (input_chars >= 0),
    input_tokens      INTEGER CHECK (input_tokens >= 0),
    window_tokens     INTEGER CHECK (window_tokens >= 0),
    answer_tokens     INTEGER CHECK (answer_tokens >= 0),
    CHECK ((status IN ('judged', 'committed')) = (judged_at IS NOT NULL)),
    CHECK ((status = 'committed') = (committed_at IS NOT NULL)),
    CHECK ((status = 'committed') = (ingest <> 'none')),
    CHECK ((judged_at IS NULL) = (model IS NULL) AND (judged_at IS NULL) = (prompt_tokens IS NULL) AND (judged_at IS NULL) = (cached_tokens IS NULL)),
    CHECK ((judged_at IS NULL) = (completion_tokens IS NULL) AND (judged_at IS NULL) = (cost_microcents IS NULL) AND (judged_at IS NULL) = (total_ms IS NULL)),
    CHECK ((asked_at IS NULL) = (head IS NULL) AND (asked_at IS NULL) = (moment IS NULL))
) STRICT;
CREATE INDEX turns_session ON turns (session);
CREATE INDEX turns_unfinished ON turns (seq) WHERE status IN ('open', 'judged');
CREATE INDEX turns_owed ON turns (seq) WHERE ingest = 'owed';
CREATE INDEX turns_committed_at ON turns (committed_at) WHERE committed_at IS NOT NULL;

-- Costs alone, by turn.
CREATE VIEW inference_costs AS
SELECT seq AS turn, model, prompt_tokens, cached_tokens, completion_tokens, cost_microcents, first_token_ms, total_ms, judged_at AS at
FROM turns
WHERE judged_at IS NOT NULL;

-- A message is claimed by a turn until the turn is committed or given up. The claim is stale
-- when the turn is abandoned, or still open after the lease. What the creator said stays with the
-- model until it is answered: by a message that names it, by a wake that ends in words, or by the
-- creator, who closes it. `file` is the file of the workspace that holds it whole, where the
-- prompt shows its ends only.
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
    turn        INTEGER REFERENCES turns (seq) ON DELETE SET NULL,
    lease_until INTEGER,
    ended_at    INTEGER,
    answered_at INTEGER,
    answered_by TEXT    CHECK (answered_by IN ('reply', 'words', 'creator')),
    file        TEXT,
    CHECK ((state = 'in_progress') = (lease_until IS NOT NULL)),
    CHECK (state <> 'in_progress' OR turn IS NOT NULL),
    CHECK ((state IN ('processed', 'failed')) = (ended_at IS NOT NULL))
) STRICT;
CREATE INDEX inbox_messages_state ON inbox_messages (state, seq);
CREATE INDEX inbox_messages_turn ON inbox_messages (turn) WHERE turn IS NOT NULL;
CREATE INDEX inbox_messages_outside ON inbox_messages (seq) WHERE label IN ('peer', 'web');

-- What a turn answers: a message of the inbox, which holds the text and its origin, or a text
-- of its own.
CREATE TABLE turn_inputs (
    turn    INTEGER NOT NULL REFERENCES turns (seq) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    message INTEGER REFERENCES inbox_messages (seq),
    body    TEXT,
    label   TEXT    CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source  TEXT,
    PRIMARY KEY (turn, ordinal),
    CHECK ((message IS NULL) = (body IS NOT NULL)),
    CHECK ((body IS NULL) = (label IS NULL) AND (body IS NULL) = (source IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_inputs_message ON turn_inputs (message) WHERE message IS NOT NULL;
CREATE INDEX turn_inputs_outside ON turn_inputs (turn) WHERE label IN ('peer', 'web');

-- What stays the same of prompts from turn to turn, and is kept once: the names and texts of
-- layers, in their order, and how a history was shown. `sha256` is that of `body`.
CREATE TABLE prompt_parts (
    seq    INTEGER PRIMARY KEY,
    sha256 BLOB    NOT NULL UNIQUE CHECK (length(sha256) = 32),
    body   TEXT    NOT NULL CHECK (json_valid(body))
) STRICT;

-- What the turns before `upto` did, summed up, since the prompt does not show them any more.
-- The label is the lowest of what it was made of.
CREATE TABLE digests (
    upto   INTEGER PRIMARY KEY,
    body   TEXT    NOT NULL CHECK (json_valid(body)),
    label  TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    at     INTEGER NOT NULL
) STRICT;

-- What all answers of models used, those of turns that were lost as well: a server charges
-- for what it sent, whatever became of it here. `unsettled` counts those that were asked for at a
-- price and never came, `estimated` those of which nobody had counted the tokens.
CREATE TABLE inference_totals (
    one               INTEGER PRIMARY KEY CHECK (one = 1),
    answers           INTEGER NOT NULL CHECK (answers >= 0),
    prompt_tokens     INTEGER NOT NULL CHECK (prompt_tokens >= 0),
    cached_tokens     INTEGER NOT NULL CHECK (cached_tokens >= 0),
    completion_tokens INTEGER NOT NULL CHECK (completion_tokens >= 0),
    cost_microcents   INTEGER NOT NULL CHECK (cost_microcents >= 0),
    estimated         INTEGER NOT NULL DEFAULT 0 CHECK (estimated >= 0),
    unsettled         INTEGER NOT NULL DEFAULT 0 CHECK (unsettled >= 0)
) STRICT;
INSERT INTO inference_totals (one, answers, prompt_tokens, cached_tokens, completion_tokens, cost_microcents)
VALUES (1, 0, 0, 0, 0, 0);

-- Answers that were asked for at a price and not heard yet, by the names that they were asked
-- for with: a cloud says by these what they cost. `booking` is the row of the ledger.
CREATE TABLE unsettled_answers (
    id      TEXT    PRIMARY KEY,
    turn    TEXT    NOT NULL,
    cloud   TEXT,
    most    INTEGER NOT NULL CHECK (most > 0),
    booking INTEGER NOT NULL REFERENCES ledger (seq),
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The rules that are asked are nearly always the same ones: each list of them is kept once.
-- A decision's link has the hash of the names.
CREATE TABLE rule_sets (
    id     INTEGER PRIMARY KEY,
    names  TEXT    NOT NULL UNIQUE CHECK (json_valid(names))
) STRICT;
CREATE TRIGGER rule_sets_kept BEFORE DELETE ON rule_sets BEGIN SELECT RAISE(ABORT, 'sets of rules are never deleted'); END;
CREATE TRIGGER rule_sets_fixed BEFORE UPDATE ON rule_sets BEGIN SELECT RAISE(ABORT, 'sets of rules are never changed'); END;

-- One row a call: what was asked for, what was decided about it and what it intends, and how
-- it ended. A request of a sandboxed command has one, too, without an ordinal: it is judged like
-- a call. `source` is who wrote the arguments, `result_*` who the result. The decision holds what
-- it was made under: the labels of what the turn answers and of what the wake heard, whose
-- authority that gives, the approval that it used, and how long it took; `intents` is what would
-- be done, each with an id of its own, from which the nonces of payments derive.
--
-- Decision and outcome are part of the audit: they are only ever added to, and outlive the turn,
-- which is therefore no foreign key. The arguments and the result go with the turn; their hashes
-- stay. Where they are long they are packed by zlib, and are blobs: the shell of SQLite shows
-- `iif(typeof(result) = 'blob', CAST(sqlar_uncompress(result, 1 << 24) AS TEXT), result)`.
CREATE TABLE tool_calls (
    seq             INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL UNIQUE,
    turn            INTEGER NOT NULL,
    ordinal         INTEGER,
    tool            TEXT    NOT NULL,
    arguments       ANY     CHECK (typeof(arguments) IN ('text', 'blob', 'null')),
    source          TEXT    NOT NULL,
    effect          TEXT    NOT NULL CHECK (effect IN ('observes', 'mutates')),
    status          TEXT    CHECK (status IN ('planned', 'started', 'done', 'failed', 'refused', 'invalid', 'skipped', 'unknown', 'not_started')),
    result          ANY     CHECK (typeof(result) IN ('text', 'blob', 'null')),
    result_label    TEXT    CHECK (result_label IN ('creator', 'self', 'tool', 'peer', 'web')),
    result_source   TEXT,
    started_at      INTEGER,
    duration_ms     INTEGER CHECK (duration_ms >= 0),
    exit_code       INTEGER,
    args_sha256     BLOB    CHECK (length(args_sha256) = 32),
    intents         TEXT    CHECK (json_valid(intents)),
    outcome         TEXT    CHECK (outcome IN ('allow', 'ask', 'deny')),
    code            TEXT,
    reason          TEXT,
    risk            TEXT    CHECK (risk IN ('safe', 'caution', 'dangerous', 'forbidden')),
    rules           INTEGER REFERENCES rule_sets (id),
    rules_triggered TEXT    CHECK (json_valid(rules_triggered)),
    input_label     TEXT    CHECK (input_label IN ('creator', 'self', 'tool', 'peer', 'web')),
    heard_label     TEXT    CHECK (heard_label IN ('creator', 'self', 'tool', 'peer', 'web')),
    authority       TEXT    CHECK (authority IN ('creator', 'self', 'external')),
    approval        TEXT,
    latency_ms      INTEGER CHECK (latency_ms >= 0),
    decided_at      INTEGER,
    decided_link    INTEGER,
    decided_sha256  BLOB    CHECK (length(decided_sha256) = 32),
    result_sha256   BLOB    CHECK (length(result_sha256) = 32),
    ended_at        INTEGER,
    ended_link      INTEGER,
    ended_sha256    BLOB    CHECK (length(ended_sha256) = 32),
    UNIQUE (turn, ordinal),
    CHECK ((ordinal IS NULL) = (status IS NULL)),
    CHECK (result IS NULL OR status NOT IN ('planned', 'started')),
    CHECK ((status IN ('planned', 'started')) = (result_label IS NULL) AND (result_label IS NULL) = (result_source IS NULL)),
    CHECK ((status IN ('started', 'done', 'failed', 'unknown')) = (started_at IS NOT NULL)),
    CHECK ((outcome IS NULL) = (code IS NULL) AND (outcome IS NULL) = (reason IS NULL) AND (outcome IS NULL) = (risk IS NULL)),
    CHECK ((outcome IS NULL) = (rules IS NULL) AND (outcome IS NULL) = (rules_triggered IS NULL) AND (outcome IS NULL) = (intents IS NULL)),
    CHECK ((outcome IS NULL) = (input_label IS NULL) AND (outcome IS NULL) = (heard_label IS NULL) AND (outcome IS NULL) = (authority IS NULL)),
    CHECK ((outcome IS NULL) = (latency_ms IS NULL) AND (outcome IS NULL) = (decided_at IS NULL)),
    CHECK ((result_sha256 IS NULL) = (ended_at IS NULL))
) STRICT;
CREATE INDEX tool_calls_outside ON tool_calls (turn) WHERE result_label IN ('peer', 'web') AND result IS NOT NULL;
CREATE INDEX tool_calls_decided ON tool_calls (decided_at) WHERE outcome IS NOT NULL;
CREATE TRIGGER tool_calls_kept BEFORE DELETE ON tool_calls WHEN old.outcome IS NOT NULL OR old.result_sha256 IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'decisions are never deleted'); END;
CREATE TRIGGER tool_calls_decisions_fixed
BEFORE UPDATE OF id, turn, ordinal, tool, source, effect, args_sha256, intents, outcome, code, reason, risk, rules, rules_triggered,
    input_label, heard_label, authority, approval, latency_ms, decided_at, decided_link, decided_sha256
ON tool_calls WHEN old.decided_sha256 IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'decisions are never changed'); END;
CREATE TRIGGER tool_calls_outcomes_fixed
BEFORE UPDATE OF status, result_label, result_source, duration_ms, exit_code, result_sha256, ended_at, ended_link, ended_sha256
ON tool_calls WHEN old.ended_sha256 IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'outcomes are never changed'); END;

-- Decisions alone, each under the id of its call.
CREATE VIEW policy_decisions AS
SELECT c.id, c.turn, c.id AS call, c.tool, c.args_sha256, c.outcome, c.code, c.reason, c.risk, r.names AS rules_evaluated,
    c.rules_triggered, c.decided_at AS at, c.input_label, c.heard_label, c.authority, c.approval, c.latency_ms
FROM tool_calls AS c
JOIN rule_sets AS r ON r.id = c.rules;

-- Questions to the creator. `subject` is what waits for the answer: a payment, or the call that
-- was not made; then `tool` and `arguments` (with sorted keys) say exactly which one would be, and
-- `used_by` is the call that was made in its place, once. `action_sha256` is what an answer is
-- given to.
CREATE TABLE approvals (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL UNIQUE,
    kind          TEXT    NOT NULL CHECK (kind IN ('payment', 'call')),
    subject       TEXT    NOT NULL UNIQUE,
    tool          TEXT,
    arguments     TEXT    CHECK (arguments IS NULL OR json_valid(arguments)),
    action_sha256 BLOB    NOT NULL CHECK (length(action_sha256) = 32),
    summary       TEXT    NOT NULL,
    code          TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('waiting', 'approved', 'denied', 'expired', 'used')),
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
CREATE INDEX approvals_waiting ON approvals (seq) WHERE state = 'waiting';
CREATE INDEX approvals_granted ON approvals (seq) WHERE state = 'approved' AND kind = 'call';

-- What became of each question, and by whose hand: part of the audit chain.
CREATE TABLE approval_steps (
    id            TEXT    PRIMARY KEY,
    approval      TEXT    NOT NULL,
    step          TEXT    NOT NULL CHECK (step IN ('waiting', 'approved', 'denied', 'expired', 'used')),
    action_sha256 BLOB    NOT NULL CHECK (length(action_sha256) = 32),
    label         TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source        TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    link          INTEGER,
    sha256        BLOB    CHECK (length(sha256) = 32)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER approval_steps_kept BEFORE DELETE ON approval_steps BEGIN SELECT RAISE(ABORT, 'steps of approvals are never deleted'); END;
CREATE TRIGGER approval_steps_fixed BEFORE UPDATE ON approval_steps WHEN old.sha256 IS NOT NULL BEGIN SELECT RAISE(ABORT, 'steps of approvals are never changed'); END;

-- Requests of sandboxed commands: one row each, with the call of the command and with the
-- decision, which is in `tool_calls` under the same id, and in the audit chain. The last
-- columns are what came of it; without them, that is not known, or it was refused.
CREATE TABLE egress (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,
    call       TEXT    NOT NULL,
    method     TEXT    NOT NULL,
    origin     TEXT    NOT NULL,
    outcome    TEXT    NOT NULL CHECK (outcome IN ('allow', 'ask', 'deny')),
    code       TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    status     INTEGER CHECK (status BETWEEN 100 AND 999),
    bytes_up   INTEGER CHECK (bytes_up >= 0),
    bytes_down INTEGER CHECK (bytes_down >= 0),
    ended      TEXT,
    ended_at   INTEGER,
    CHECK ((ended IS NULL) = (ended_at IS NULL) AND (ended IS NULL) = (bytes_up IS NULL) AND (ended IS NULL) = (bytes_down IS NULL)),
    CHECK (outcome = 'allow' OR ended IS NULL)
) STRICT;

-- What counts towards how often something may be done. A row is written with the decision
-- that allows a call, and goes when the call is known to have come to nothing, or is older
-- than any limit looks.
CREATE TABLE rate_uses (
    rule   TEXT    NOT NULL,
    call   INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (rule, at, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_uses_call ON rate_uses (call);
CREATE TRIGGER rate_uses_fixed BEFORE UPDATE ON rate_uses BEGIN SELECT RAISE(ABORT, 'uses are never changed'); END;

-- Files that were written after reading what others wrote: who reads them reads that.
CREATE TABLE path_labels (
    path   TEXT    PRIMARY KEY,
    label  TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What sends a message, its `cause`, is a call, a turn that ends in words, or a wake cycle
-- that ends: each sends one.
CREATE TABLE outbox_messages (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT    NOT NULL UNIQUE,
    cause     TEXT    NOT NULL UNIQUE,
    body      TEXT    NOT NULL,
    label     TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source    TEXT    NOT NULL,
    reply_to  TEXT,
    at        INTEGER NOT NULL
) STRICT;

-- What is remembered, in five tiers. Of a name there is one item that holds for each kind of a
-- tier, and beside it what less trusted sources say; what was superseded keeps when it held.
-- `strength` is the confidence of a fact, the importance of an event, the trust in somebody, in
-- percent. `seen` counts how often the same came from the same source.
CREATE TABLE memories (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    tier          TEXT    NOT NULL CHECK (tier IN ('working', 'episodic', 'semantic', 'procedural', 'relationship')),
    kind          TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    body          TEXT    NOT NULL,
    label         TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source        TEXT    NOT NULL,
    strength      INTEGER NOT NULL CHECK (strength BETWEEN 0 AND 100),
    seen          INTEGER NOT NULL DEFAULT 1 CHECK (seen > 0),
    successes     INTEGER NOT NULL DEFAULT 0 CHECK (successes >= 0),
    failures      INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    sha256        BLOB    NOT NULL CHECK (length(sha256) = 32),
    turn          TEXT,
    valid_from    INTEGER NOT NULL,
    valid_to      INTEGER,
    seen_at       INTEGER NOT NULL,
    superseded_by INTEGER,
    expires_at    INTEGER,
    CHECK (superseded_by IS NULL OR valid_to IS NOT NULL)
) STRICT;
CREATE INDEX memories_named ON memories (name, kind, tier) WHERE valid_to IS NULL AND name <> '';
CREATE INDEX memories_same ON memories (sha256) WHERE valid_to IS NULL;
CREATE INDEX memories_newest ON memories (tier, seen_at, id) WHERE valid_to IS NULL;
CREATE INDEX memories_ended ON memories (valid_to) WHERE valid_to IS NOT NULL;
CREATE INDEX memories_expiring ON memories (expires_at) WHERE expires_at IS NOT NULL AND valid_to IS NULL;
CREATE INDEX memories_outside ON memories (id) WHERE label IN ('peer', 'web');

-- How many of them hold, by tier and by whether anybody but the creator and the automaton says so.
CREATE TABLE memory_counts (
    tier    TEXT    NOT NULL CHECK (tier IN ('working', 'episodic', 'semantic', 'procedural', 'relationship')),
    outside INTEGER NOT NULL CHECK (outside IN (0, 1)),
    rows    INTEGER NOT NULL CHECK (rows >= 0),
    PRIMARY KEY (tier, outside)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_counts (tier, outside, rows) VALUES (new.tier, new.label NOT IN ('creator', 'self'), 1)
    ON CONFLICT (tier, outside) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER memories_closed AFTER UPDATE OF valid_to ON memories WHEN old.valid_to IS NULL AND new.valid_to IS NOT NULL BEGIN
    UPDATE memory_counts SET rows = rows - 1 WHERE tier = new.tier AND outside = (new.label NOT IN ('creator', 'self'));
    DELETE FROM memory_words WHERE rowid = old.id;
    DELETE FROM memory_words_outside WHERE rowid = old.id;
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories WHEN old.valid_to IS NULL BEGIN
    UPDATE memory_counts SET rows = rows - 1 WHERE tier = old.tier AND outside = (old.label NOT IN ('creator', 'self'));
    DELETE FROM memory_words WHERE rowid = old.id;
    DELETE FROM memory_words_outside WHERE rowid = old.id;
END;

-- The words by which they are found: those of the creator and of the automaton itself, and beside
-- them those of everybody else, which can then crowd nothing out.
CREATE VIRTUAL TABLE memory_words USING fts5 (name, kind, body, content = '', contentless_delete = 1);
CREATE VIRTUAL TABLE memory_words_outside USING fts5 (name, kind, body, content = '', contentless_delete = 1);

-- Payments of every kind. A row is written before anything is signed, the header with the
-- signature before anything is sent. `request` tells what makes two of them the same: at most one
-- of them is open, so that whoever wants it again goes on with that one. `units` are base units of
-- what is paid with: 10⁻⁶ USDC, or 10⁻⁶ cents of credits; `worth` is the same in 10⁻⁶ cents.
-- `counted_at` is when it was written down, in window time.
CREATE TABLE payments (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    purpose      TEXT    NOT NULL,
    rail         TEXT    NOT NULL CHECK (rail IN ('usdc', 'credits')),
    request      TEXT    NOT NULL,
    origin       TEXT    NOT NULL,
    payee        TEXT    NOT NULL,
    chain        INTEGER CHECK (chain > 0),
    asset        TEXT,
    payer        TEXT,
    units        INTEGER NOT NULL CHECK (units > 0),
    worth        INTEGER NOT NULL CHECK (worth > 0),
    turn         TEXT,
    call         TEXT,
    goal         TEXT,
    note         TEXT    NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('proposed', 'approved', 'signed', 'submitted', 'unknown', 'settled', 'failed', 'expired')),
    header       TEXT,
    value        TEXT,
    nonce        TEXT    UNIQUE,
    valid_before INTEGER,
    tx           TEXT,
    reason       TEXT,
    label        TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source       TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    changed_at   INTEGER NOT NULL,
    counted_at   INTEGER NOT NULL DEFAULT 0,
    told_by      TEXT,
    CHECK ((rail = 'usdc') = (chain IS NOT NULL)),
    CHECK ((asset IS NULL) = (chain IS NULL) AND (payer IS NULL) = (chain IS NULL)),
    CHECK ((nonce IS NULL) = (rail = 'credits' OR state IN ('proposed', 'approved', 'failed'))),
    CHECK ((header IS NULL) = (nonce IS NULL) AND (value IS NULL) = (nonce IS NULL)),
    CHECK ((valid_before IS NULL) = (nonce IS NULL))
) STRICT;
CREATE UNIQUE INDEX payments_open ON payments (request)
WHERE state IN ('proposed', 'approved', 'signed', 'submitted', 'unknown');
CREATE INDEX payments_windows ON payments (purpose, at);
CREATE INDEX payments_turn ON payments (turn) WHERE turn IS NOT NULL;

-- Every step of every payment, and every demand that was refused before it became one: part
-- of the audit chain.
CREATE TABLE payment_steps (
    id      TEXT    PRIMARY KEY,
    payment TEXT    NOT NULL,
    step    TEXT    NOT NULL CHECK (step IN ('proposed', 'approved', 'signed', 'submitted', 'unknown', 'settled', 'failed', 'expired', 'refused')),
    detail  TEXT    NOT NULL,
    label   TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    link    INTEGER,
    sha256  BLOB    CHECK (length(sha256) = 32)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER payment_steps_kept BEFORE DELETE ON payment_steps BEGIN SELECT RAISE(ABORT, 'steps of payments are never deleted'); END;
CREATE TRIGGER payment_steps_fixed BEFORE UPDATE ON payment_steps WHEN old.sha256 IS NOT NULL BEGIN SELECT RAISE(ABORT, 'steps of payments are never changed'); END;

-- One link a write of the store, over the rows that it added. Each of them has the number of its link
-- and a digest of what the link covers of it: of a call `decided_*` and `ended_*`, of a step
-- `link` and `sha256`.
--
-- `changes` is the digest of the rows of `audit_changes` of this link, where it has any: it stays
-- when they are folded.
CREATE TABLE audit_chain (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    sha256  BLOB    NOT NULL CHECK (length(sha256) = 32),
    changes BLOB    CHECK (length(changes) = 32)
) STRICT;
CREATE TRIGGER audit_chain_kept BEFORE DELETE ON audit_chain BEGIN SELECT RAISE(ABORT, 'links are never deleted'); END;
CREATE TRIGGER audit_chain_fixed BEFORE UPDATE ON audit_chain BEGIN SELECT RAISE(ABORT, 'links are never changed'); END;

-- Rows that may change, as the write of a link left them: the hash of the row's columns, or none
-- where the row was deleted. The newest one for a row of the table `source` says what that row must be.
-- Two more names stand for no table: `floor` says that links up to the number `row` keep their digest
-- alone, and `stray` that the row named was not what the chain says when the program next wrote it.
CREATE TABLE audit_changes (
    source TEXT    NOT NULL,
    row    TEXT    NOT NULL,
    link   INTEGER NOT NULL,
    sha256 BLOB    CHECK (length(sha256) = 32),
    PRIMARY KEY (source, row, link)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_changes_link ON audit_changes (link);

-- How long the chain is and how it ends, kept apart so that a cut tail is found. `changes` counts
-- the rows of `audit_changes`, `rows` those of tables that they cover: much more of the first than of
-- the second is folded.
CREATE TABLE audit_head (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    links   INTEGER NOT NULL CHECK (links >= 0),
    sha256  BLOB    NOT NULL CHECK (length(sha256) = 32),
    changes INTEGER NOT NULL DEFAULT 0,
    rows    INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO audit_head (one, links, sha256) VALUES (1, 0, zeroblob(32));

-- Profit and loss: costs below zero, revenue above, in 10⁻⁶ cents. Only ever added to; a cost
-- that was booked at its worst case is corrected by another row, which names the one that it
-- `corrects` and counts at its time, and is the only one that does. `key` makes a booking happen
-- once that somebody may tell of again; that of an answer has none, and is found by
-- `unsettled_answers` until it is corrected.
CREATE TABLE ledger (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT,
    category TEXT    NOT NULL,
    amount   INTEGER NOT NULL CHECK (amount <> 0),
    turn     INTEGER,
    goal     TEXT,
    corrects INTEGER REFERENCES ledger (seq),
    source   TEXT    NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ledger_key ON ledger (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX ledger_corrects ON ledger (corrects) WHERE corrects IS NOT NULL;
CREATE INDEX ledger_at ON ledger (at);
CREATE INDEX ledger_goal ON ledger (goal) WHERE goal IS NOT NULL;
CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is only added to'); END;
CREATE TRIGGER ledger_fixed BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is only added to'); END;

-- How far the history of the account with a cloud was read: its entries, and the sales beside
-- them.
CREATE TABLE account_reads (
    origin TEXT    PRIMARY KEY,
    entry  INTEGER NOT NULL CHECK (entry >= 0),
    sale   INTEGER NOT NULL CHECK (sale >= 0)
) STRICT, WITHOUT ROWID;

-- Paid requests to ports of its machines, added up for each port. `told` is how many of them
-- and how much of them messages to the creator have told, and when the last message was.
CREATE TABLE port_sales (
    machine     TEXT    NOT NULL,
    port        INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),
    sales       INTEGER NOT NULL CHECK (sales > 0),
    amount      INTEGER NOT NULL CHECK (amount >= 0),
    last_at     INTEGER NOT NULL,
    told_sales  INTEGER NOT NULL DEFAULT 0 CHECK (told_sales BETWEEN 0 AND sales),
    told_amount INTEGER NOT NULL DEFAULT 0 CHECK (told_amount BETWEEN 0 AND amount),
    told_at     INTEGER,
    PRIMARY KEY (machine, port)
) STRICT, WITHOUT ROWID;

-- Ports of the sandbox here that are open to everybody, with the commands that ran beside the
-- turns when they were opened. After a start of the process they are opened again: the
-- decision about that and the state `reopening` are stored before anything is started.
CREATE TABLE published_ports (
    port     INTEGER PRIMARY KEY CHECK (port BETWEEN 1 AND 65535),
    -- USDC a request as the call said it; empty for nothing.
    price    TEXT    NOT NULL,
    url      TEXT    NOT NULL,
    -- A list of texts in JSON.
    commands TEXT    NOT NULL,
    -- The call that opened it, whose decision is stored with it, and its turn.
    call     TEXT    NOT NULL,
    turn     TEXT    NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('open', 'reopening')),
    -- What was decided when it was last opened again.
    decision TEXT,
    at       INTEGER NOT NULL
) STRICT;

-- The last moment of window time that is known, which no clock that is set makes faster, and
-- what the clocks said then. What has to be known to go on after a restart.
CREATE TABLE window_time (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    window INTEGER NOT NULL,
    wall   INTEGER NOT NULL,
    -- The time of the chain's last block, where it was known.
    chain  INTEGER
) STRICT;
INSERT INTO window_time (one, window, wall) VALUES (1, 0, 0);

-- What was last read of the balances, when each kind of plea last went out, and since when it
-- lives cheaply, with the tier of that time.
CREATE TABLE vitals (
    one          INTEGER PRIMARY KEY CHECK (one = 1),
    credits      INTEGER,
    read_at      INTEGER,
    usdc         INTEGER CHECK (usdc >= 0),
    seen_at      INTEGER,
    broke_ms     INTEGER CHECK (broke_ms >= 0),
    refused      INTEGER,
    low_at       INTEGER,
    critical_at  INTEGER,
    dead_at      INTEGER,
    thrift_since INTEGER,
    thrift_tier  TEXT    CHECK (thrift_tier IN ('dead', 'critical', 'low_compute', 'normal', 'high')),
    own_at       INTEGER,
    CHECK ((credits IS NULL) = (read_at IS NULL))
) STRICT;
INSERT INTO vitals (one) VALUES (1);

-- Each time that the tier became another one.
CREATE TABLE tier_changes (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    from_tier TEXT    CHECK (from_tier IN ('dead', 'critical', 'low_compute', 'normal', 'high')),
    to_tier   TEXT    NOT NULL CHECK (to_tier IN ('dead', 'critical', 'low_compute', 'normal', 'high')),
    credits   INTEGER NOT NULL,
    at        INTEGER NOT NULL
) STRICT;

-- The hibernation that it is in, with where the tables stood when it began, and the least that
-- was seen of each balance since.
CREATE TABLE hibernation (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    since      INTEGER NOT NULL,
    reason     TEXT    NOT NULL,
    ledger_seq INTEGER NOT NULL CHECK (ledger_seq >= 0),
    inbox_seq  INTEGER NOT NULL CHECK (inbox_seq >= 0),
    wake_seq   INTEGER NOT NULL CHECK (wake_seq >= 0),
    credits    INTEGER,
    usdc       INTEGER CHECK (usdc >= 0),
    read_at    INTEGER,
    CHECK (credits IS NULL OR read_at IS NOT NULL)
) STRICT;

-- Machines that the dead give back: a row is made before the cloud is asked, and goes with the
-- message that tells the creator.
CREATE TABLE machine_releases (
    machine TEXT    PRIMARY KEY,
    name    TEXT    NOT NULL,
    at      INTEGER NOT NULL
) STRICT;

-- `anchor_at` is the time that a schedule counts from: the last time that was served.
-- `next_run_at` is the one after it, `retry_at` the next try of a run that failed, `attempt` the
-- number of the retry that ran last. `fence` counts leases, so that a run whose lease expired
-- cannot report for the one that followed it.
CREATE TABLE heartbeat_schedule (
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

-- `woke` tells whether a run woke the automaton: each task has a budget of wakes an hour.
CREATE TABLE heartbeat_history (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    run         TEXT    NOT NULL UNIQUE,
    task        TEXT    NOT NULL,
    result      TEXT    NOT NULL CHECK (result IN ('success', 'failure', 'timeout', 'lost')),
    note        TEXT    NOT NULL,
    duration_ms INTEGER NOT NULL CHECK (duration_ms >= 0),
    at          INTEGER NOT NULL,
    woke        INTEGER NOT NULL DEFAULT 0 CHECK (woke IN (0, 1))
) STRICT;
CREATE INDEX heartbeat_history_task ON heartbeat_history (task, seq);
CREATE INDEX heartbeat_history_at ON heartbeat_history (at, result);

-- What a task has woken the automaton for already. A row lasts while each run of the task
-- finds the same, and until `expires_at` at most.
CREATE TABLE heartbeat_dedup (
    key        TEXT    PRIMARY KEY,
    task       TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Snapshots of what is measured of a life, for as long as a week.
CREATE TABLE metric_snapshots (
    at     INTEGER NOT NULL,
    name   TEXT    NOT NULL,
    value  INTEGER NOT NULL,
    PRIMARY KEY (at, name)
) STRICT, WITHOUT ROWID;

-- One row for each time that a rule held; it is active until `cleared_at`. `fired_at` is when
-- the rule last fired, be it before this time.
CREATE TABLE alerts (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    rule       TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('active', 'cleared')),
    message    TEXT    NOT NULL,
    since      INTEGER NOT NULL,
    fired_at   INTEGER,
    times      INTEGER NOT NULL CHECK (times >= 0),
    cleared_at INTEGER,
    CHECK ((state = 'cleared') = (cleared_at IS NOT NULL)),
    CHECK (times = 0 OR fired_at IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX alerts_active ON alerts (rule) WHERE state = 'active';
CREATE INDEX alerts_rule ON alerts (rule, seq);

-- The upper bounds of a histogram's buckets, in milliseconds; the last has no end.
CREATE TABLE metric_bounds (
    le_ms  INTEGER NOT NULL PRIMARY KEY
) STRICT;
INSERT INTO metric_bounds (le_ms)
VALUES (5), (10), (25), (50), (100), (250), (500), (1000), (2500), (5000), (10000), (30000), (60000), (300000),
    (9223372036854775807);

-- Rows that were deleted, by what they count for: counters and histograms over a whole life
-- must never fall. `part` is the cause of a wake, or a tool and how its call ended; `le_ms` is the
-- bucket of a duration, and 0 elsewhere.
CREATE TABLE metric_folds (
    family TEXT    NOT NULL,
    part   TEXT    NOT NULL,
    le_ms  INTEGER NOT NULL,
    count  INTEGER NOT NULL CHECK (count > 0),
    sum_ms INTEGER NOT NULL CHECK (sum_ms >= 0),
    PRIMARY KEY (family, part, le_ms)
) STRICT, WITHOUT ROWID;

-- What is not of the audit goes with its turn.
CREATE TRIGGER turns_gone AFTER DELETE ON turns BEGIN
    DELETE FROM tool_calls WHERE turn = old.seq AND outcome IS NULL AND result_sha256 IS NULL;
    UPDATE tool_calls SET arguments = NULL, result = NULL WHERE turn = old.seq;
END;

CREATE TRIGGER turns_folded AFTER DELETE ON turns WHEN old.status = 'committed' BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('turn', '', (SELECT min(le_ms) FROM metric_bounds WHERE le_ms >= old.committed_at - old.opened_at), 1,
        max(old.committed_at - old.opened_at, 0))
    ON CONFLICT DO UPDATE SET count = count + 1, sum_ms = sum_ms + excluded.sum_ms;
END;

CREATE TRIGGER models_folded AFTER DELETE ON turns WHEN old.total_ms IS NOT NULL BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('model', '', (SELECT min(le_ms) FROM metric_bounds WHERE le_ms >= old.total_ms), 1, max(old.total_ms, 0))
    ON CONFLICT DO UPDATE SET count = count + 1, sum_ms = sum_ms + excluded.sum_ms;
END;

CREATE TRIGGER heartbeat_history_folded AFTER DELETE ON heartbeat_history BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('heartbeat', '', (SELECT min(le_ms) FROM metric_bounds WHERE le_ms >= old.duration_ms), 1, old.duration_ms)
    ON CONFLICT DO UPDATE SET count = count + 1, sum_ms = sum_ms + excluded.sum_ms;
END;

CREATE TRIGGER wake_events_folded AFTER DELETE ON wake_events BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('wake', old.cause, 0, 1, 0)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;

-- A call that never came before the policy may name any tool at all.
CREATE TRIGGER tool_calls_folded AFTER DELETE ON tool_calls BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('call', iif(old.status IN ('invalid', 'skipped'), '', old.tool) || ' ' || old.status, 0, 1, 0)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
