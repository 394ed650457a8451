-- Every time is integer milliseconds since the Unix epoch, every amount of credits integer
-- microcents, of USDC integer micro-USDC, every closed enumeration has a CHECK. Addresses are
-- their 20 bytes, hashes their 32. Of what gives access, tokens and keys, only the SHA-256 is
-- stored.

CREATE TABLE server (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    secret  BLOB    NOT NULL CHECK (length(secret) = 32),
    made_at INTEGER NOT NULL
) STRICT;

-- Nonces of messages that came back signed. One that nobody came back for has no row: it proves
-- itself, so that asking for many stores nothing.
CREATE TABLE used_nonces (
    nonce      TEXT    PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    -- The hash of the message and signature that used it up.
    proof      BLOB    NOT NULL CHECK (length(proof) = 32),
    used_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX used_nonces_by_end ON used_nonces (expires_at);

CREATE TABLE access_tokens (
    hash       BLOB    PRIMARY KEY CHECK (length(hash) = 32),
    wallet     BLOB    NOT NULL CHECK (length(wallet) = 20),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX access_tokens_by_end ON access_tokens (expires_at);

CREATE TABLE api_keys (
    hash    BLOB    PRIMARY KEY CHECK (length(hash) = 32),
    wallet  BLOB    NOT NULL CHECK (length(wallet) = 20),
    prefix  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    -- The access token that made it, which makes only one.
    token   BLOB    NOT NULL UNIQUE CHECK (length(token) = 32),
    shown   INTEGER NOT NULL CHECK (shown >= 1),
    made_at INTEGER NOT NULL,
    -- Whether the wallet was never in the ledger: anybody can make such keys, without end.
    is_strangers INTEGER NOT NULL CHECK (is_strangers IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_of ON api_keys (wallet, made_at);
CREATE INDEX api_keys_of_strangers ON api_keys (made_at) WHERE is_strangers = 1;

-- What a wallet may transfer in 24 hours by all of its keys together, where that is not the
-- usual: a new key is no new ceiling. `serial` is the number of the last message by which the
-- creator said so.
CREATE TABLE ceilings (
    wallet BLOB    PRIMARY KEY CHECK (length(wallet) = 20),
    cents  INTEGER NOT NULL CHECK (cents >= 0),
    serial INTEGER NOT NULL CHECK (serial >= 0)
) STRICT, WITHOUT ROWID;

-- A wallet is bound to the first payload that it registers, so that no nonce can
-- be replayed with another one; an automaton that has lost its id gets this one.
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
    kind   TEXT    NOT NULL CHECK (kind IN ('wallet', 'held', 'external', 'revenue')),
    wallet BLOB    CHECK (length(wallet) = 20),
    CHECK ((kind IN ('wallet', 'held')) = (wallet IS NOT NULL))
) STRICT;
CREATE TRIGGER no_stranger AFTER INSERT ON accounts WHEN new.kind = 'wallet'
BEGIN UPDATE api_keys SET is_strangers = 0 WHERE wallet = new.wallet; END;
CREATE UNIQUE INDEX accounts_of_wallets ON accounts (kind, wallet) WHERE wallet IS NOT NULL;
CREATE UNIQUE INDEX accounts_of_the_house ON accounts (kind) WHERE wallet IS NULL;
INSERT INTO accounts (kind) VALUES ('external'), ('revenue');

CREATE TABLE postings (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL REFERENCES accounts (id),
    key     TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    UNIQUE (account, key)
) STRICT;
CREATE TRIGGER postings_stay BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER postings_remain BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;

CREATE TABLE entries (
    posting       INTEGER NOT NULL REFERENCES postings (seq),
    account       INTEGER NOT NULL REFERENCES accounts (id),
    amount        INTEGER NOT NULL CHECK (amount <> 0),
    balance_after INTEGER NOT NULL,
    PRIMARY KEY (account, posting)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;

-- One call of a model, from before it begins. `name` is what its client calls it, so that one
-- whose answer was not heard is found again.
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
    cache_write_tokens INTEGER,
    completion_tokens INTEGER,
    metering          TEXT    CHECK (metering IN ('reported', 'estimated')),
    opened_at         INTEGER NOT NULL,
    closed_at         INTEGER,
    name              TEXT,
    CHECK ((state = 'settled') = (charged IS NOT NULL)),
    CHECK ((state = 'open') = (closed_at IS NULL))
) STRICT;
CREATE INDEX holds_open ON holds (state) WHERE state = 'open';
CREATE INDEX holds_named ON holds (wallet, name) WHERE name IS NOT NULL;

-- One machine, from before anything of it exists until after nothing of it does. A tunnel is
-- a sandbox that is its owner's own, elsewhere: a place with ports, as a machine is. Nothing of
-- it is here to be started, charged or removed, so it stands where a machine stands of which
-- nothing is left.
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
    is_tunnel      INTEGER NOT NULL DEFAULT 0 CHECK (is_tunnel = 0 OR (is_tunnel = 1 AND state = 'deleted')),
    UNIQUE (owner, request_name),
    CHECK (healthy_at IS NOT NULL OR (state <> 'running' AND billed_minutes = 0)),
    CHECK ((healthy_at IS NULL) = (paid_until IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX machines_there ON machines (owner) WHERE state <> 'deleted';
CREATE UNIQUE INDEX tunnels ON machines (owner) WHERE is_tunnel = 1;

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

-- One authorization that somebody sent us, from before it is broadcast. One that pays for
-- requests to a port of a machine is good for no other port and for nothing else; what
-- `delivered_at` says of a purchase's reply, it says there of the request: when it was passed
-- on, once.
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
    -- Who gets the credits of a purchase, and of which tier; somebody else than the
    -- payer is a gift. What is settled for another seller has none of this.
    recipient    BLOB    CHECK (length(recipient) = 20),
    gift         INTEGER CHECK (gift IN (0, 1)),
    usd          INTEGER CHECK (usd > 0),
    state        TEXT    NOT NULL CHECK (state IN ('begun', 'submitted', 'settled', 'failed')),
    -- The transaction that carried it out, whoever sent it. Another program's may carry out
    -- several payments, each with a log of its own; one of ours carries out one, and needs none.
    tx_hash      BLOB    CHECK (length(tx_hash) = 32),
    log_index    INTEGER CHECK (log_index IS NULL OR (log_index >= 0 AND tx_hash IS NOT NULL)),
    failure      TEXT,
    begun_at     INTEGER NOT NULL,
    closed_at    INTEGER,
    delivered_at INTEGER,
    -- What the recipient of a purchase had when it was stored, and then when it was credited,
    -- set aside or not, in microcents: the reply tells no balance of another time.
    balance      INTEGER CHECK ((balance IS NULL) = (recipient IS NULL)),
    machine      TEXT    REFERENCES machines (id),
    port         INTEGER CHECK ((port IS NULL) = (machine IS NULL) AND (port IS NULL OR recipient IS NULL)),
    UNIQUE (chain, asset, payer, nonce),
    UNIQUE (tx_hash, log_index),
    CHECK ((recipient IS NULL) = (usd IS NULL) AND (recipient IS NULL) = (gift IS NULL)),
    CHECK ((state = 'failed') = (failure IS NOT NULL)),
    CHECK ((state = 'settled') = (tx_hash IS NOT NULL)),
    CHECK ((state IN ('settled', 'failed')) = (closed_at IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX payments_by_own_transaction ON payments (tx_hash) WHERE log_index IS NULL;
CREATE INDEX payments_open ON payments (state) WHERE state IN ('begun', 'submitted');
CREATE INDEX payments_of ON payments (payer, recipient, usd, begun_at);
CREATE INDEX payments_sold ON payments (payee) WHERE machine IS NOT NULL;
CREATE INDEX payments_of_machines ON payments (machine) WHERE machine IS NOT NULL;

-- Payments for requests to ports that are settled, in the order in which they were: what an
-- owner earned.
CREATE TABLE sales (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    payment INTEGER NOT NULL UNIQUE REFERENCES payments (id)
) STRICT;

-- One nonce of the account that pays gas: from before the signer is asked for it
-- until a transaction with that nonce is in a block for good.
CREATE TABLE gas_nonces (
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
CREATE INDEX gas_nonces_of ON gas_nonces (payment);
CREATE UNIQUE INDEX gas_nonces_open ON gas_nonces (payment) WHERE state = 'open';

-- The transactions of a nonce, each with higher fees than the one before; all of
-- them do the same, and one at most gets into a block. Fees are in wei for a unit
-- of gas.
CREATE TABLE gas_transactions (
    intent       TEXT    NOT NULL REFERENCES gas_nonces (intent),
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
-- payment: one authorization for one thing. They come with the payment: once it is on its
-- way, anybody has all of it but its names.
CREATE TABLE payment_names (
    payer   BLOB    NOT NULL CHECK (length(payer) = 20),
    name    TEXT    NOT NULL,
    request BLOB    NOT NULL CHECK (length(request) = 32),
    payment INTEGER NOT NULL REFERENCES payments (id),
    at      INTEGER NOT NULL,
    PRIMARY KEY (payer, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_names_of ON payment_names (payment);

-- One transfer of credits, which is also the reply to whoever repeats it under its name.
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
CREATE TRIGGER transfers_stay BEFORE UPDATE ON transfers
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;
CREATE TRIGGER transfers_remain BEFORE DELETE ON transfers
BEGIN SELECT RAISE(ABORT, 'the ledger is only appended to'); END;

-- What an automaton said of itself last, as the JSON that it sent, read and written
-- anew: one row a wallet.
CREATE TABLE statuses (
    wallet      BLOB    PRIMARY KEY CHECK (length(wallet) = 20),
    report      TEXT    NOT NULL CHECK (length(report) <= 4096),
    received_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
