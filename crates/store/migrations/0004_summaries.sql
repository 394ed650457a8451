-- What turns came to that no prompt shows any more, in the words of a model. `upto` is the number
-- of the first turn that is not in it. One without text was of no use, and is not asked for again.
CREATE TABLE session_summaries (
    upto            INTEGER PRIMARY KEY,
    from_turn       INTEGER NOT NULL CHECK (from_turn < upto),
    session         TEXT    NOT NULL,
    label           TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    body            TEXT    NOT NULL,
    model           TEXT    NOT NULL,
    tokens_before   INTEGER NOT NULL CHECK (tokens_before >= 0),
    tokens_after    INTEGER NOT NULL CHECK (tokens_after >= 0),
    cost_microcents INTEGER NOT NULL CHECK (cost_microcents >= 0),
    at              INTEGER NOT NULL
) STRICT;
