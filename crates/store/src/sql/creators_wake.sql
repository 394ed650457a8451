-- Whether the creator caused the newest wake cycle, or one that it goes on with, since that
-- ended with its process or with failures.
SELECT EXISTS (
    SELECT 1
    FROM sessions AS s
    JOIN wake_events AS w ON w.session = s.seq
    WHERE (w.cause = 'manual' OR w.label = 'creator')
      AND s.seq > coalesce(
        (SELECT max(seq) FROM sessions
         WHERE ended_at IS NOT NULL AND reason NOT IN ('shutdown', 'crash', 'turns_used', 'errors')),
        0
      )
) AS creators
