-- A ledger that came out of a backup does not know what was signed since. From the window time
-- at which it was restored on, the ceilings that held then count as used. One row.
CREATE TABLE restored (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    window    INTEGER NOT NULL,
    per_hour  INTEGER NOT NULL CHECK (per_hour >= 0),
    per_day   INTEGER NOT NULL CHECK (per_day >= 0),
    per_payee INTEGER NOT NULL CHECK (per_payee >= 0)
) STRICT;
