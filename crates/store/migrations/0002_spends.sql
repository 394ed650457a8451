-- Payments. A row is written before anything is signed; the header with the
-- signature before anything is sent.
CREATE TABLE spends (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    origin       TEXT    NOT NULL,
    usd          INTEGER NOT NULL CHECK (usd > 0),
    chain        INTEGER NOT NULL CHECK (chain > 0),
    asset        TEXT    NOT NULL,
    payer        TEXT    NOT NULL,
    payee        TEXT    NOT NULL,
    amount       INTEGER NOT NULL CHECK (amount > 0),
    state        TEXT    NOT NULL CHECK (state IN ('proposed', 'signed', 'submitted', 'settled', 'failed', 'expired')),
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
    CHECK ((nonce IS NULL) = (state IN ('proposed', 'failed'))),
    CHECK ((header IS NULL) = (nonce IS NULL)),
    CHECK ((value IS NULL) = (nonce IS NULL)),
    CHECK ((valid_before IS NULL) = (nonce IS NULL))
) STRICT;

-- One purchase at a time: whatever wants another one goes on with this one.
CREATE UNIQUE INDEX spends_open ON spends (1)
WHERE state IN ('proposed', 'signed', 'submitted');
