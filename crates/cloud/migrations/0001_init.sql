-- The first schema. Every time is integer milliseconds since the Unix epoch,
-- every amount of credits integer microcents, of USDC integer micro-USDC, every
-- enumeration has a CHECK. Addresses are their 20 bytes, hashes their 32. Of what
-- gives access, tokens and keys, only the SHA-256 is stored.

CREATE TABLE server (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    secret  BLOB    NOT NULL CHECK (length(secret) = 32),
    made_at INTEGER NOT NULL
) STRICT;

CREATE TABLE nonces (
    nonce      TEXT    PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    -- The hash of the message and signature that used it up.
    proof      BLOB    CHECK (length(proof) = 32),
    used_at    INTEGER,
    CHECK ((proof IS NULL) = (used_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX nonces_expiry ON nonces (expires_at);

CREATE TABLE access_tokens (
    hash       BLOB    PRIMARY KEY CHECK (length(hash) = 32),
    wallet     BLOB    NOT NULL CHECK (length(wallet) = 20),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    hash    BLOB    PRIMARY KEY CHECK (length(hash) = 32),
    wallet  BLOB    NOT NULL CHECK (length(wallet) = 20),
    prefix  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    -- The access token that made it, which makes only one.
    token   BLOB    NOT NULL UNIQUE CHECK (length(token) = 32),
    shown   INTEGER NOT NULL CHECK (shown >= 1),
    made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A wallet is bound to the first payload that it registers, so that no nonce can
-- be replayed with another one.
CREATE TABLE registrations (
    wallet              BLOB    PRIMARY KEY CHECK (length(wallet) = 20),
    automaton_id        TEXT    NOT NULL,
    creator_address     TEXT    NOT NULL,
    name                TEXT    NOT NULL,
    bio                 TEXT    NOT NULL,
    genesis_prompt_hash TEXT,
    nonce               TEXT    NOT NULL,
    payload_hash        BLOB    NOT NULL CHECK (length(payload_hash) = 32),
    at                  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The ledger: double entry, only ever appended to. A wallet has two accounts,
-- what it can spend and what is set aside; the house has one for what came in
-- and one for what it earned.
CREATE TABLE accounts (
    id     INTEGER PRIMARY KEY,
    kind   TEXT    NOT NULL CHECK (kind IN ('wallet', 'held', 'till', 'revenue')),
    wallet BLOB    CHECK (length(wallet) = 20),
    CHECK ((kind IN ('wallet', 'held')) = (wallet IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX accounts_of_wallets ON accounts (kind, wallet) WHERE wallet IS NOT NULL;
CREATE UNIQUE INDEX accounts_of_the_house ON accounts (kind) WHERE wallet IS NULL;
INSERT INTO accounts (kind) VALUES ('till'), ('revenue');

CREATE TABLE postings (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL REFERENCES accounts (id),
    key     TEXT    NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('purchase', 'hold', 'charge', 'release')),
    at      INTEGER NOT NULL,
    UNIQUE (account, key)
) STRICT;

CREATE TABLE entries (
    posting       INTEGER NOT NULL REFERENCES postings (seq),
    account       INTEGER NOT NULL REFERENCES accounts (id),
    amount        INTEGER NOT NULL CHECK (amount <> 0),
    balance_after INTEGER NOT NULL,
    PRIMARY KEY (account, posting)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER postings_stay BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER postings_remain BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;

-- One call of a model, from before it begins.
CREATE TABLE holds (
    id                TEXT    PRIMARY KEY,
    wallet            BLOB    NOT NULL CHECK (length(wallet) = 20),
    model             TEXT    NOT NULL,
    amount            INTEGER NOT NULL CHECK (amount >= 0),
    state             TEXT    NOT NULL CHECK (state IN ('open', 'settled', 'released')),
    cost              INTEGER,
    charged           INTEGER CHECK (charged BETWEEN 0 AND amount),
    prompt_tokens     INTEGER,
    cached_tokens     INTEGER,
    completion_tokens INTEGER,
    metering          TEXT    CHECK (metering IN ('reported', 'estimated')),
    opened_at         INTEGER NOT NULL,
    closed_at         INTEGER,
    CHECK ((state = 'settled') = (charged IS NOT NULL)),
    CHECK ((state = 'open') = (closed_at IS NULL))
) STRICT;
CREATE INDEX holds_open ON holds (state) WHERE state = 'open';

-- One authorization that somebody sent us, from before it is broadcast.
CREATE TABLE payments (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    chain        INTEGER NOT NULL,
    asset        BLOB    NOT NULL CHECK (length(asset) = 20),
    payer        BLOB    NOT NULL CHECK (length(payer) = 20),
    nonce        BLOB    NOT NULL CHECK (length(nonce) = 32),
    payee        BLOB    NOT NULL CHECK (length(payee) = 20),
    value        INTEGER NOT NULL CHECK (value > 0),
    valid_after  TEXT    NOT NULL,
    valid_before TEXT    NOT NULL,
    signature    BLOB    NOT NULL,
    -- Who gets the credits; somebody else than the payer is a gift.
    recipient    BLOB    NOT NULL CHECK (length(recipient) = 20),
    gift         INTEGER NOT NULL CHECK (gift IN (0, 1)),
    usd          INTEGER NOT NULL CHECK (usd > 0),
    state        TEXT    NOT NULL CHECK (state IN ('begun', 'submitted', 'settled', 'failed')),
    tx_hash      BLOB    UNIQUE CHECK (length(tx_hash) = 32),
    raw          BLOB,
    gas_nonce    INTEGER,
    failure      TEXT,
    begun_at     INTEGER NOT NULL,
    closed_at    INTEGER,
    delivered_at INTEGER,
    UNIQUE (chain, asset, payer, nonce),
    CHECK ((state = 'failed') = (failure IS NOT NULL)),
    CHECK ((state IN ('settled', 'failed')) = (closed_at IS NOT NULL))
) STRICT;
CREATE INDEX payments_open ON payments (state) WHERE state IN ('begun', 'submitted');
CREATE INDEX payments_of ON payments (payer, recipient, usd, begun_at);
