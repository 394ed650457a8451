-- Credits go from wallet to wallet, and back from purchases and charges. SQLite
-- cannot change a CHECK, so the ledger is copied into tables that know more kinds
-- of postings; nothing in it changes.

CREATE TABLE postings_of_all (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL REFERENCES accounts (id),
    key     TEXT    NOT NULL,
    kind    TEXT    NOT NULL
        CHECK (kind IN ('purchase', 'hold', 'charge', 'release', 'transfer', 'refund')),
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

-- One transfer, which is also the reply to whoever repeats it under its name.
CREATE TABLE transfers (
    id            TEXT    PRIMARY KEY,
    -- The hash of the API key that asked for it.
    api_key       BLOB    NOT NULL CHECK (length(api_key) = 32),
    sender        BLOB    NOT NULL CHECK (length(sender) = 20),
    recipient     BLOB    NOT NULL CHECK (length(recipient) = 20),
    cents         INTEGER NOT NULL CHECK (cents > 0),
    note          TEXT,
    -- The client's Idempotency-Key, and the hash of what it asked for under it.
    name          TEXT,
    request       BLOB    NOT NULL CHECK (length(request) = 32),
    -- What the sender had then, set aside or not.
    balance_after INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    UNIQUE (sender, name),
    CHECK (sender <> recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX transfers_by_time ON transfers (sender, at);

-- What a key may transfer in 24 hours, where that is not the usual, and the number
-- of the last message by which the creator said so.
ALTER TABLE api_keys ADD COLUMN ceiling_cents INTEGER CHECK (ceiling_cents >= 0);
ALTER TABLE api_keys ADD COLUMN ceiling_serial INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER postings_stay BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER postings_remain BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER transfers_stay BEFORE UPDATE ON transfers
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER transfers_remain BEFORE DELETE ON transfers
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
