-- A ledger as the last program of the old form made it, where one payment was counted.
CREATE TABLE limits (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    -- Millionths of a USDC.
    per_payment INTEGER NOT NULL CHECK (per_payment >= 0),
    per_day INTEGER NOT NULL CHECK (per_day >= 0),
    -- Payments that there may ever be.
    payments_max INTEGER NOT NULL CHECK (payments_max >= 0)
, per_hour INTEGER NOT NULL DEFAULT 0 CHECK (per_hour >= 0), per_payee INTEGER NOT NULL DEFAULT 0 CHECK (per_payee >= 0), lifetime INTEGER NOT NULL DEFAULT 0 CHECK (lifetime >= 0)) STRICT;
CREATE TABLE payments (
    intent TEXT PRIMARY KEY CHECK (length(intent) = 26),
    chain_id INTEGER NOT NULL CHECK (chain_id >= 0),
    asset BLOB NOT NULL CHECK (length(asset) = 20),
    payer BLOB NOT NULL CHECK (length(payer) = 20),
    payee BLOB NOT NULL CHECK (length(payee) = 20),
    -- Millionths of a USDC.
    amount INTEGER NOT NULL CHECK (amount > 0),
    deadline_s INTEGER NOT NULL CHECK (deadline_s BETWEEN 1 AND 600),
    -- Seconds since the epoch, as they were signed.
    valid_after INTEGER NOT NULL,
    valid_before INTEGER NOT NULL,
    nonce BLOB NOT NULL UNIQUE CHECK (length(nonce) = 32),
    signature BLOB NOT NULL CHECK (length(signature) = 65),
    -- The ledger's time, milliseconds since the epoch; never before an earlier row's.
    counted_at INTEGER NOT NULL
) STRICT;
CREATE INDEX payments_by_time ON payments (counted_at, amount);
CREATE TABLE transactions (
    intent TEXT PRIMARY KEY CHECK (length(intent) = 26),
    chain_id INTEGER NOT NULL CHECK (chain_id >= 0),
    payer BLOB NOT NULL CHECK (length(payer) = 20),
    callee BLOB NOT NULL CHECK (length(callee) = 20),
    data_hash BLOB NOT NULL CHECK (length(data_hash) = 32),
    account_nonce INTEGER NOT NULL CHECK (account_nonce >= 0),
    -- The most that the dearest one signed can cost, in wei.
    fee INTEGER NOT NULL CHECK (fee >= 0),
    -- The ledger's time at which the dearest one was signed.
    counted_at INTEGER NOT NULL,
    UNIQUE (chain_id, payer, account_nonce)
) STRICT;
CREATE INDEX transactions_by_time ON transactions (counted_at, fee);
CREATE TABLE signed_transactions (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    intent TEXT NOT NULL REFERENCES transactions (intent),
    -- Wei for a unit of gas; without a priority fee it is of the older form.
    max_fee INTEGER NOT NULL CHECK (max_fee >= 0),
    priority_fee INTEGER CHECK (priority_fee <= max_fee),
    raw BLOB NOT NULL,
    UNIQUE (intent, max_fee)
) STRICT;
CREATE TABLE anchor (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    window INTEGER NOT NULL,
    wall INTEGER NOT NULL,
    -- The time of the chain's last block, where it was known.
    chain INTEGER
) STRICT;
CREATE INDEX payments_by_payee ON payments (payee, counted_at, amount);
CREATE TABLE authority (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    creator BLOB CHECK (length(creator) = 20),
    -- How many changes there were: a signed message is good for the next one only.
    serial INTEGER NOT NULL CHECK (serial >= 0)
, wallet BLOB CHECK (length(wallet) = 20)) STRICT;
CREATE TABLE rules (
    line TEXT PRIMARY KEY,
    standing TEXT NOT NULL CHECK (standing IN ('accepted', 'asked'))
) STRICT;
INSERT INTO limits VALUES (1, 300, 700, 9, 500, 600, 900);
INSERT INTO authority VALUES (1, NULL, 4, NULL);
INSERT INTO rules VALUES ('pay usdc 8453', 'accepted');
INSERT INTO anchor VALUES (1, 1767355200000, 1767355200000, NULL);
INSERT INTO payments VALUES ('00000000000000000000000001', 1, zeroblob(20), zeroblob(20), zeroblob(20), 70, 9, 0, 1,
    zeroblob(32), zeroblob(65), 1767355200000);
PRAGMA user_version = 5;
