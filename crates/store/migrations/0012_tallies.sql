-- What is counted over a whole life, though its rows are deleted when they are old:
-- counters and histograms must never fall.

-- The upper bounds of a histogram's buckets, in milliseconds; the last has no end.
CREATE TABLE metric_bounds (
    le_ms  INTEGER NOT NULL PRIMARY KEY,
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'runtime'
) STRICT;
INSERT INTO metric_bounds (le_ms)
VALUES (5), (10), (25), (50), (100), (250), (500), (1000), (2500), (5000), (10000), (30000), (60000), (300000),
    (9223372036854775807);

-- Rows that were deleted, by what they count for. `part` is the cause of a wake, or a
-- tool and how its call ended; `le_ms` is the bucket of a duration, and 0 elsewhere.
CREATE TABLE metric_folds (
    family TEXT    NOT NULL CHECK (family IN ('turn', 'model', 'tool', 'heartbeat', 'call', 'wake')),
    part   TEXT    NOT NULL,
    le_ms  INTEGER NOT NULL,
    count  INTEGER NOT NULL CHECK (count > 0),
    sum_ms INTEGER NOT NULL CHECK (sum_ms >= 0),
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'runtime',
    PRIMARY KEY (family, part, le_ms)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER turns_folded AFTER DELETE ON turns WHEN old.status = 'committed' BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('turn', '', (SELECT min(le_ms) FROM metric_bounds WHERE le_ms >= old.committed_at - old.opened_at), 1,
        max(old.committed_at - old.opened_at, 0))
    ON CONFLICT DO UPDATE SET count = count + 1, sum_ms = sum_ms + excluded.sum_ms;
END;

CREATE TRIGGER heartbeat_history_folded AFTER DELETE ON heartbeat_history BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('heartbeat', '', (SELECT min(le_ms) FROM metric_bounds WHERE le_ms >= old.duration_ms), 1, old.duration_ms)
    ON CONFLICT DO UPDATE SET count = count + 1, sum_ms = sum_ms + excluded.sum_ms;
END;

CREATE TRIGGER wake_events_folded AFTER DELETE ON wake_events BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('wake', old.cause, 0, 1, 0)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;

-- A call that never came before the policy may name any tool at all.
CREATE TRIGGER tool_calls_folded AFTER DELETE ON tool_calls BEGIN
    INSERT INTO metric_folds (family, part, le_ms, count, sum_ms)
    VALUES ('call', iif(old.status IN ('invalid', 'skipped'), '', old.tool) || ' ' || old.status, 0, 1, 0)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
