-- What the creator permits. One row.
CREATE TABLE limits (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    -- Millionths of a USDC.
    per_payment INTEGER NOT NULL CHECK (per_payment >= 0),
    per_day INTEGER NOT NULL CHECK (per_day >= 0),
    -- Payments that there may ever be.
    payments_max INTEGER NOT NULL CHECK (payments_max >= 0)
) STRICT;

-- Until the creator says otherwise: 25 USDC a payment, 50 USDC a day, 10,000 payments.
INSERT INTO limits (id, per_payment, per_day, payments_max) VALUES (1, 25000000, 50000000, 10000);

-- Every payment that was ever signed. Rows are never changed or removed.
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
