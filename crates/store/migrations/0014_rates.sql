-- What counts towards how often something may be done. A row is written with the decision
-- that allows a call, and goes when the call is known to have come to nothing, or is older
-- than any limit looks.
CREATE TABLE rate_uses (
    rule   TEXT    NOT NULL,
    call   TEXT    NOT NULL,
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'policy',
    at     INTEGER NOT NULL,
    PRIMARY KEY (rule, at, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_uses_call ON rate_uses (call);
CREATE TRIGGER rate_uses_fixed BEFORE UPDATE ON rate_uses BEGIN SELECT RAISE(ABORT, 'uses are never changed'); END;
