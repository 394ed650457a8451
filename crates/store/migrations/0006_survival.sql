-- How it is off, limits on what is thought without a call of the creator, and sleep
-- without an end of its own.

-- Enumerations and a condition that grew; see 0004.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''budget'', ''crash''', '''budget'', ''envelope'', ''blocked'', ''broke'', ''crash''')
WHERE type = 'table' AND name IN ('automaton', 'sessions');
UPDATE sqlite_schema SET sql = replace(sql, '(sleep_since IS NULL) = (sleep_until IS NULL) AND (sleep_since IS NULL)', '(sleep_until IS NULL OR sleep_since IS NOT NULL) AND (sleep_since IS NULL)')
WHERE type = 'table' AND name = 'automaton';
PRAGMA writable_schema = RESET;

-- Where the ledger stood when the creator last called, or when the automaton last had
-- to rest for what it thought since, and how often it had to since that call.
ALTER TABLE automaton ADD COLUMN stretch_from INTEGER NOT NULL DEFAULT 0 CHECK (stretch_from >= 0);
ALTER TABLE automaton ADD COLUMN rests INTEGER NOT NULL DEFAULT 0 CHECK (rests >= 0);
UPDATE automaton SET stretch_from = (SELECT coalesce(max(seq), 0) FROM ledger);

-- What was last read of the balances, and when each kind of plea last went out.
CREATE TABLE vitals (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    credits     INTEGER,
    read_at     INTEGER,
    usdc        INTEGER CHECK (usdc >= 0),
    seen_at     INTEGER,
    broke_ms    INTEGER CHECK (broke_ms >= 0),
    refused     INTEGER,
    low_at      INTEGER,
    critical_at INTEGER,
    dead_at     INTEGER,
    label       TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source      TEXT    NOT NULL DEFAULT 'runtime',
    CHECK ((credits IS NULL) = (read_at IS NULL))
) STRICT;
INSERT INTO vitals (one) VALUES (1);

-- Each time that the tier became another one.
CREATE TABLE tier_changes (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    from_tier TEXT    CHECK (from_tier IN ('dead', 'critical', 'low_compute', 'normal', 'high')),
    to_tier   TEXT    NOT NULL CHECK (to_tier IN ('dead', 'critical', 'low_compute', 'normal', 'high')),
    credits   INTEGER NOT NULL,
    label     TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source    TEXT    NOT NULL DEFAULT 'runtime',
    at        INTEGER NOT NULL
) STRICT;
