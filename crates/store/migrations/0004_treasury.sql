-- One way for all payments, an account of profit and loss, and questions to the
-- creator.

-- Enumerations that grew. The stored rows stay as they are; only what a column may
-- hold changes, which SQLite documents as an edit of the schema's text.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''sleeping'', ''dead''', '''sleeping'', ''hibernating'', ''dead''')
WHERE type = 'table' AND name IN ('automaton', 'state_changes');
UPDATE sqlite_schema SET sql = replace(sql, '''shutdown'', ''crash''', '''shutdown'', ''stop_loss'', ''budget'', ''crash''')
WHERE type = 'table' AND name IN ('automaton', 'sessions');
UPDATE sqlite_schema SET sql = replace(sql, '''observe'', ''top_up''', '''observe'', ''top_up'', ''transfer'', ''fetch_paid''')
WHERE type = 'table' AND name = 'intents';
UPDATE sqlite_schema SET sql = replace(sql, '''intent'', ''outcome''', '''intent'', ''outcome'', ''payment''')
WHERE type = 'table' AND name = 'audit_chain';
PRAGMA writable_schema = RESET;

-- Payments of every kind. `request` tells what makes two of them the same: at most
-- one of them is open, so that whoever wants it again goes on with that one.
-- `units` are base units of what is paid with: 10⁻⁶ USDC, or 10⁻⁶ cents of credits;
-- `worth` is the same in 10⁻⁶ cents.
CREATE TABLE payments (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    purpose      TEXT    NOT NULL CHECK (purpose IN ('top_up', 'x402', 'transfer')),
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
    CHECK ((rail = 'usdc') = (chain IS NOT NULL)),
    CHECK ((asset IS NULL) = (chain IS NULL) AND (payer IS NULL) = (chain IS NULL)),
    CHECK ((nonce IS NULL) = (rail = 'credits' OR state IN ('proposed', 'approved', 'failed'))),
    CHECK ((header IS NULL) = (nonce IS NULL) AND (value IS NULL) = (nonce IS NULL)),
    CHECK ((valid_before IS NULL) = (nonce IS NULL))
) STRICT;
CREATE UNIQUE INDEX payments_open ON payments (request)
WHERE state IN ('proposed', 'approved', 'signed', 'submitted', 'unknown');
CREATE INDEX payments_windows ON payments (purpose, at);

INSERT INTO payments (seq, id, purpose, rail, request, origin, payee, chain, asset, payer, units, worth, note, state,
    header, value, nonce, valid_before, tx, reason, label, source, at, changed_at)
SELECT seq, id, 'top_up', 'usdc', 'top_up', origin, payee, chain, asset, payer, amount, amount * 100,
    'credits for $' || usd, iif(state = 'proposed', 'approved', state), header, value, nonce, valid_before, tx, reason,
    label, source, at, changed_at
FROM spends;
DROP TABLE spends;

-- Every step of every payment, and every demand that was refused before it became
-- one. Part of the audit chain.
CREATE TABLE payment_steps (
    id      TEXT    PRIMARY KEY,
    payment TEXT    NOT NULL,
    step    TEXT    NOT NULL CHECK (step IN ('proposed', 'approved', 'signed', 'submitted', 'unknown', 'settled', 'failed', 'expired', 'refused')),
    detail  TEXT    NOT NULL,
    label   TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source  TEXT    NOT NULL,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_steps_of ON payment_steps (payment);
CREATE TRIGGER payment_steps_kept BEFORE DELETE ON payment_steps BEGIN SELECT RAISE(ABORT, 'steps of payments are never deleted'); END;
CREATE TRIGGER payment_steps_fixed BEFORE UPDATE ON payment_steps BEGIN SELECT RAISE(ABORT, 'steps of payments are never changed'); END;

-- Questions to the creator. `subject` is what waits for the answer: a payment.
CREATE TABLE approvals (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    kind        TEXT    NOT NULL CHECK (kind IN ('payment')),
    subject     TEXT    NOT NULL UNIQUE,
    summary     TEXT    NOT NULL,
    code        TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('waiting', 'approved', 'denied', 'lapsed')),
    label       TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source      TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    answered_at INTEGER,
    CHECK ((state = 'waiting') = (answered_at IS NULL))
) STRICT;
CREATE INDEX approvals_waiting ON approvals (seq) WHERE state = 'waiting';

-- Profit and loss: costs below zero, revenue above, in 10⁻⁶ cents. Only ever added
-- to; a cost that was booked at its worst case is corrected by another row, which
-- names the one that it `corrects` and counts at its time. `key` makes each booking
-- happen once.
CREATE TABLE ledger (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT    NOT NULL UNIQUE,
    category TEXT    NOT NULL CHECK (category IN ('inference', 'x402', 'transfer', 'revenue', 'funding')),
    amount   INTEGER NOT NULL CHECK (amount <> 0),
    turn     TEXT,
    goal     TEXT,
    corrects INTEGER REFERENCES ledger (seq),
    label    TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source   TEXT    NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX ledger_at ON ledger (at);
CREATE INDEX ledger_goal ON ledger (goal) WHERE goal IS NOT NULL;
CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is only added to'); END;
CREATE TRIGGER ledger_fixed BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is only added to'); END;

-- What was spent on thinking before the ledger began: by turn, and what was lost with
-- its turn.
INSERT INTO ledger (key, category, amount, turn, source, at)
SELECT 'answer:' || turn, 'inference', -cost_microcents, turn, 'provider', at
FROM inference_costs
WHERE cost_microcents > 0;
INSERT INTO ledger (key, category, amount, source, at)
SELECT 'answer:lost', 'inference', of_turns.cost - cost_microcents, 'provider', of_turns.last
FROM inference_totals, (
    SELECT coalesce(sum(cost_microcents), 0) AS cost, coalesce(max(at), 0) AS last
    FROM inference_costs
) AS of_turns
WHERE cost_microcents > of_turns.cost;

-- Bookings after this one count towards the stop-loss: the creator, or money, that
-- wakes a hibernating automaton gives it a new start.
ALTER TABLE automaton ADD COLUMN losses_from INTEGER NOT NULL DEFAULT 0 CHECK (losses_from >= 0);

-- The hibernation that it is in, with where the tables stood when it began, and the
-- least that was seen of each balance since.
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
    label      TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source     TEXT    NOT NULL DEFAULT 'runtime',
    CHECK (credits IS NULL OR read_at IS NOT NULL)
) STRICT;
