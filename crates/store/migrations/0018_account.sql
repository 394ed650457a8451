-- What rented machines cost is booked, and how far the history of the account with a cloud
-- was read is kept with what it told: its entries, and the sales beside them.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''funding''', '''funding'', ''machine''')
WHERE type = 'table' AND name = 'ledger';
PRAGMA writable_schema = RESET;

CREATE TABLE account_reads (
    origin TEXT    PRIMARY KEY,
    entry  INTEGER NOT NULL CHECK (entry >= 0),
    sale   INTEGER NOT NULL CHECK (sale >= 0),
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'treasury'
) STRICT, WITHOUT ROWID;
