-- Who may raise a ceiling without the passphrase. One row.
CREATE TABLE authority (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    creator BLOB CHECK (length(creator) = 20),
    -- How many changes there were: a signed message is good for the next one only.
    serial INTEGER NOT NULL CHECK (serial >= 0)
) STRICT;

INSERT INTO authority (id, serial) VALUES (1, 0);

-- What the signer may sign for, a line each: what its creator accepted, and what
-- the last start that was refused had asked for.
CREATE TABLE rules (
    line TEXT PRIMARY KEY,
    standing TEXT NOT NULL CHECK (standing IN ('accepted', 'asked'))
) STRICT;
