-- Answers that were asked for at a price and not heard yet, by the names that they were asked
-- for with: a cloud says by these what they cost.
CREATE TABLE unheard_answers (
    id     TEXT    PRIMARY KEY,
    turn   TEXT    NOT NULL,
    cloud  TEXT,
    most   INTEGER NOT NULL CHECK (most > 0),
    at     INTEGER NOT NULL,
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'runtime'
) STRICT, WITHOUT ROWID;
