-- Payments are settled for others, too, and their transactions have a table of
-- their own: an account's number is a row before anything is signed with it, and
-- each transaction that was ever signed with it is kept.

CREATE TABLE payments_of_all (
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
    -- Who gets the credits of a purchase, and of which tier; somebody else than the
    -- payer is a gift. What is settled for another seller has none of this.
    recipient    BLOB    CHECK (length(recipient) = 20),
    gift         INTEGER CHECK (gift IN (0, 1)),
    usd          INTEGER CHECK (usd > 0),
    state        TEXT    NOT NULL CHECK (state IN ('begun', 'submitted', 'settled', 'failed')),
    -- The transaction that carried it out, whoever sent it.
    tx_hash      BLOB    UNIQUE CHECK (length(tx_hash) = 32),
    failure      TEXT,
    begun_at     INTEGER NOT NULL,
    closed_at    INTEGER,
    delivered_at INTEGER,
    UNIQUE (chain, asset, payer, nonce),
    CHECK ((recipient IS NULL) = (usd IS NULL) AND (recipient IS NULL) = (gift IS NULL)),
    CHECK ((state = 'failed') = (failure IS NOT NULL)),
    CHECK ((state = 'settled') = (tx_hash IS NOT NULL)),
    CHECK ((state IN ('settled', 'failed')) = (closed_at IS NOT NULL))
) STRICT;

-- A transaction of the account that paid the gas before may still be on its way.
-- It is not lost sight of: the chain is asked for the authorization, not for it.
INSERT INTO payments_of_all
    (id, chain, asset, payer, nonce, payee, value, valid_after, valid_before, signature, recipient,
     gift, usd, state, tx_hash, failure, begun_at, closed_at, delivered_at)
SELECT id, chain, asset, payer, nonce, payee, value, valid_after, valid_before, signature,
       recipient, gift, usd, iif(state = 'submitted', 'begun', state),
       iif(state = 'settled', tx_hash, NULL), failure, begun_at, closed_at, delivered_at
FROM payments;
DROP TABLE payments;
ALTER TABLE payments_of_all RENAME TO payments;
CREATE INDEX payments_open ON payments (state) WHERE state IN ('begun', 'submitted');
CREATE INDEX payments_of ON payments (payer, recipient, usd, begun_at);

-- One number of the account that pays gas: from before the signer is asked for it
-- until a transaction with that number is in a block for good.
CREATE TABLE gas_slots (
    intent    TEXT    PRIMARY KEY,
    payment   INTEGER NOT NULL REFERENCES payments (id),
    -- What its transactions may use.
    gas       INTEGER NOT NULL CHECK (gas > 0),
    -- Known once something is signed.
    nonce     INTEGER CHECK (nonce >= 0),
    -- Spent by one of its transactions, or lost to one that is not ours.
    state     TEXT    NOT NULL CHECK (state IN ('open', 'spent', 'lost')),
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    CHECK ((state = 'open') = (closed_at IS NULL))
) STRICT;
CREATE INDEX gas_slots_of ON gas_slots (payment);
CREATE UNIQUE INDEX gas_slots_open ON gas_slots (payment) WHERE state = 'open';

-- The transactions of a slot, each with higher fees than the one before; all of
-- them do the same, and one at most gets into a block. Fees are in wei for a unit
-- of gas.
CREATE TABLE gas_transactions (
    intent       TEXT    NOT NULL REFERENCES gas_slots (intent),
    attempt      INTEGER NOT NULL CHECK (attempt >= 1),
    max_fee      INTEGER NOT NULL CHECK (max_fee > 0),
    priority_fee INTEGER NOT NULL CHECK (priority_fee BETWEEN 0 AND max_fee),
    hash         BLOB    UNIQUE CHECK (length(hash) = 32),
    raw          BLOB,
    at           INTEGER NOT NULL,
    PRIMARY KEY (intent, attempt),
    CHECK ((hash IS NULL) = (raw IS NULL))
) STRICT, WITHOUT ROWID;

-- Names under which clients sent a payment, so that the same name is the same
-- payment: one authorization for one thing.
CREATE TABLE payment_names (
    payer   BLOB    NOT NULL CHECK (length(payer) = 20),
    name    TEXT    NOT NULL,
    request BLOB    NOT NULL CHECK (length(request) = 32),
    payment INTEGER NOT NULL REFERENCES payments (id),
    at      INTEGER NOT NULL,
    PRIMARY KEY (payer, name)
) STRICT, WITHOUT ROWID;
