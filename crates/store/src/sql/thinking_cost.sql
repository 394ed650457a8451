-- ?1 the time 24 hours ago, ?2 that of an hour ago. A wake that goes on for longer than a day
-- is counted by its last day.
SELECT
    coalesce(sum(-amount), 0) AS day,
    coalesce(sum(-amount) FILTER (WHERE at > ?2), 0) AS hour,
    coalesce(sum(-amount) FILTER (WHERE turn >= (
        SELECT min(seq) FROM turns
        WHERE session = (SELECT seq FROM sessions WHERE ended_at IS NULL)
    )), 0) AS session
FROM ledger
WHERE category = 'inference' AND at > ?1
