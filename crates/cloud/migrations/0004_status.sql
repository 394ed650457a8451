-- What an automaton said of itself last, as the JSON that it sent, read and written
-- anew: one row a wallet.
CREATE TABLE statuses (
    wallet      BLOB    PRIMARY KEY CHECK (length(wallet) = 20),
    report      TEXT    NOT NULL CHECK (length(report) <= 4096),
    received_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
