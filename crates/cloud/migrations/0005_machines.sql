-- Machines for rent. What they cost is a kind of posting of its own, and SQLite cannot
-- change a CHECK, so the ledger is copied once more; nothing in it changes.

CREATE TABLE postings_of_all (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL REFERENCES accounts (id),
    key     TEXT    NOT NULL,
    kind    TEXT    NOT NULL
        CHECK (kind IN ('purchase', 'hold', 'charge', 'release', 'transfer', 'refund', 'machine')),
    at      INTEGER NOT NULL,
    UNIQUE (account, key)
) STRICT;
CREATE TABLE entries_of_all (
    posting       INTEGER NOT NULL REFERENCES postings_of_all (seq),
    account       INTEGER NOT NULL REFERENCES accounts (id),
    amount        INTEGER NOT NULL CHECK (amount <> 0),
    balance_after INTEGER NOT NULL,
    PRIMARY KEY (account, posting)
) STRICT, WITHOUT ROWID;
INSERT INTO postings_of_all SELECT seq, account, key, kind, at FROM postings;
INSERT INTO entries_of_all SELECT posting, account, amount, balance_after FROM entries;
DROP TABLE entries;
DROP TABLE postings;
ALTER TABLE postings_of_all RENAME TO postings;
ALTER TABLE entries_of_all RENAME TO entries;
CREATE TRIGGER postings_stay BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER postings_remain BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;

-- One machine, from before anything of it exists until after nothing of it does.
CREATE TABLE machines (
    id             TEXT    PRIMARY KEY CHECK (length(id) = 26),
    -- The label of its host names.
    short_id       TEXT    NOT NULL UNIQUE,
    owner          BLOB    NOT NULL CHECK (length(owner) = 20),
    name           TEXT    NOT NULL,
    tier           TEXT    NOT NULL,
    -- The price of a month of 30 days, in microcents, as it was when it was asked for.
    monthly        INTEGER NOT NULL CHECK (monthly > 0),
    state          TEXT    NOT NULL
        CHECK (state IN ('requested', 'booting', 'running', 'stopping', 'stopped', 'failed',
                         'deleting', 'deleted')),
    -- Since when it stands there; for one that runs, when that was last seen.
    since          INTEGER NOT NULL,
    reason         TEXT,
    -- When it first passed its health check: nothing is charged before.
    healthy_at     INTEGER,
    paid_until     INTEGER,
    billed_minutes INTEGER NOT NULL DEFAULT 0 CHECK (billed_minutes >= 0),
    -- The sum of its postings.
    billed         INTEGER NOT NULL DEFAULT 0 CHECK (billed >= 0),
    created_at     INTEGER NOT NULL,
    -- The client's Idempotency-Key, and the hash of what it asked for under it.
    request_name   TEXT,
    request        BLOB    NOT NULL CHECK (length(request) = 32),
    UNIQUE (owner, request_name),
    CHECK (healthy_at IS NOT NULL OR (state <> 'running' AND billed_minutes = 0)),
    CHECK ((healthy_at IS NULL) = (paid_until IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX machines_there ON machines (owner) WHERE state <> 'deleted';

-- A command that was asked for under a name, from before it starts, with what the client
-- gets who asks again.
CREATE TABLE executions (
    api_key  BLOB    NOT NULL CHECK (length(api_key) = 32),
    name     TEXT    NOT NULL,
    request  BLOB    NOT NULL CHECK (length(request) = 32),
    machine  TEXT    NOT NULL REFERENCES machines (id),
    result   BLOB,
    begun_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (api_key, name),
    CHECK ((result IS NULL) = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX executions_by_end ON executions (ended_at);

-- Ports of machines that anybody reaches.
CREATE TABLE ports (
    machine TEXT    NOT NULL REFERENCES machines (id),
    port    INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),
    -- What a request costs, in micro-USDC; nothing, where it is free.
    price   INTEGER CHECK (price > 0),
    at      INTEGER NOT NULL,
    PRIMARY KEY (machine, port)
) STRICT, WITHOUT ROWID;
