-- The signer's ledger: what was signed, and what may be. It is never made anew: that would
-- reset its ceilings.

-- What the creator permits, in millionths of a USDC. One row.
CREATE TABLE limits (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    per_payment  INTEGER NOT NULL CHECK (per_payment >= 0),
    per_day      INTEGER NOT NULL CHECK (per_day >= 0),
    -- Payments that there may ever be.
    payments_max INTEGER NOT NULL CHECK (payments_max >= 0),
    per_hour     INTEGER NOT NULL DEFAULT 0 CHECK (per_hour >= 0),
    per_payee    INTEGER NOT NULL DEFAULT 0 CHECK (per_payee >= 0),
    lifetime     INTEGER NOT NULL DEFAULT 0 CHECK (lifetime >= 0)
) STRICT;
-- Until the creator says otherwise: 25 USDC a payment, 50 USDC an hour, a day and a payee,
-- 250,000 USDC in a life, 10,000 payments.
INSERT INTO limits (id, per_payment, per_day, payments_max, per_hour, per_payee, lifetime)
VALUES (1, 25000000, 50000000, 10000, 50000000, 50000000, 250000000000);

-- Every payment that was ever signed. Rows are never changed or removed.
CREATE TABLE payments (
    intent       TEXT    PRIMARY KEY CHECK (length(intent) = 26),
    chain_id     INTEGER NOT NULL CHECK (chain_id >= 0),
    asset        BLOB    NOT NULL CHECK (length(asset) = 20),
    payer        BLOB    NOT NULL CHECK (length(payer) = 20),
    payee        BLOB    NOT NULL CHECK (length(payee) = 20),
    -- Millionths of a USDC.
    amount       INTEGER NOT NULL CHECK (amount > 0),
    deadline_s   INTEGER NOT NULL CHECK (deadline_s BETWEEN 1 AND 600),
    -- Seconds since the epoch, as they were signed.
    valid_after  INTEGER NOT NULL,
    valid_before INTEGER NOT NULL,
    nonce        BLOB    NOT NULL UNIQUE CHECK (length(nonce) = 32),
    signature    BLOB    NOT NULL CHECK (length(signature) = 65),
    -- The ledger's time, milliseconds since the epoch; never before an earlier row's.
    counted_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX payments_by_time ON payments (counted_at, amount);
CREATE INDEX payments_by_payee ON payments (payee, counted_at, amount);

-- An intent's place on a chain. What is here was signed at least once.
CREATE TABLE transactions (
    intent        TEXT    PRIMARY KEY CHECK (length(intent) = 26),
    chain_id      INTEGER NOT NULL CHECK (chain_id >= 0),
    payer         BLOB    NOT NULL CHECK (length(payer) = 20),
    callee        BLOB    NOT NULL CHECK (length(callee) = 20),
    data_hash     BLOB    NOT NULL CHECK (length(data_hash) = 32),
    account_nonce INTEGER NOT NULL CHECK (account_nonce >= 0),
    -- The most that the dearest one signed can cost, in wei.
    fee           INTEGER NOT NULL CHECK (fee >= 0),
    -- The ledger's time at which the dearest one was signed.
    counted_at    INTEGER NOT NULL,
    UNIQUE (chain_id, payer, account_nonce)
) STRICT;
CREATE INDEX transactions_by_time ON transactions (counted_at, fee);

-- Every transaction that was ever signed: those of one intent differ in what they
-- offer for gas, and at most one of them is ever in a block. Rows are never changed
-- or removed.
CREATE TABLE signed_transactions (
    hash         BLOB    PRIMARY KEY CHECK (length(hash) = 32),
    intent       TEXT    NOT NULL REFERENCES transactions (intent),
    -- Wei for a unit of gas; without a priority fee it is of the older form.
    max_fee      INTEGER NOT NULL CHECK (max_fee >= 0),
    priority_fee INTEGER CHECK (priority_fee <= max_fee),
    raw          BLOB    NOT NULL,
    UNIQUE (intent, max_fee)
) STRICT;

-- The window time of the last count, and what the clocks said then: milliseconds
-- since the epoch. What has to be known to go on after a restart.
CREATE TABLE anchor (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    window INTEGER NOT NULL,
    wall   INTEGER NOT NULL,
    -- The time of the chain's last block, where it was known.
    chain  INTEGER
) STRICT;

-- Who may raise a ceiling without the passphrase, and the wallet that the ledger is of,
-- since it was known: the file of its key need not name it. One row.
CREATE TABLE authority (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    creator BLOB    CHECK (length(creator) = 20),
    -- How many changes there were: a signed message is good for the next one only.
    serial  INTEGER NOT NULL CHECK (serial >= 0),
    wallet  BLOB    CHECK (length(wallet) = 20)
) STRICT;
INSERT INTO authority (id, serial) VALUES (1, 0);

-- What the signer may sign for, a line each: what its creator accepted, and what
-- the last start that was refused had asked for.
CREATE TABLE rules (
    line     TEXT PRIMARY KEY,
    standing TEXT NOT NULL CHECK (standing IN ('accepted', 'asked'))
) STRICT;
