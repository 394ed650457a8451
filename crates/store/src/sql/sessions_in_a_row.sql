-- How many of the newest wake cycles that ended did so for this reason.
SELECT count(*) AS count
FROM sessions
WHERE ended_at IS NOT NULL
    AND seq > coalesce((SELECT max(seq) FROM sessions WHERE ended_at IS NOT NULL AND reason <> ?1), 0)
