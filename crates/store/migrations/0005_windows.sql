-- Hours and days of spending are those of window time, which no clock that is set
-- makes faster: see `window.rs` of the crate `core`.

-- The last moment of it that is known, and what the clocks said then: milliseconds
-- since the epoch. What has to be known to go on after a restart.
CREATE TABLE window_time (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    window INTEGER NOT NULL,
    wall   INTEGER NOT NULL,
    -- The time of the chain's last block, where it was known.
    chain  INTEGER,
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'runtime'
) STRICT;

-- Until now a payment was counted at the wall's time, and what passed since the last
-- one has no second witness.
INSERT INTO window_time (one, window, wall)
SELECT 1, coalesce(max(at), 0), coalesce(max(at), 0) FROM payments;

-- When a payment was written down, in window time.
ALTER TABLE payments ADD COLUMN counted_at INTEGER NOT NULL DEFAULT 0;
UPDATE payments SET counted_at = at;
