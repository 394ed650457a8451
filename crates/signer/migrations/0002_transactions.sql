-- An intent's place on a chain. What is here was signed at least once.
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

-- Every transaction that was ever signed: those of one intent differ in what they
-- offer for gas, and at most one of them is ever in a block. Rows are never changed
-- or removed.
CREATE TABLE signed_transactions (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    intent TEXT NOT NULL REFERENCES transactions (intent),
    -- Wei for a unit of gas; without a priority fee it is of the older form.
    max_fee INTEGER NOT NULL CHECK (max_fee >= 0),
    priority_fee INTEGER CHECK (priority_fee <= max_fee),
    raw BLOB NOT NULL,
    UNIQUE (intent, max_fee)
) STRICT;
