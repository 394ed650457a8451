-- ?1 the oldest time that is kept, ?2 newest rows that are kept at any age,
-- ?3 rows that are kept at most, ?4 rows that are deleted at most.
DELETE FROM sessions
WHERE seq IN (
    SELECT seq
    FROM sessions AS old
    WHERE ended_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM turns WHERE session = old.seq)
      AND NOT EXISTS (SELECT 1 FROM wake_events WHERE session = old.seq)
      AND seq NOT IN (SELECT seq FROM sessions ORDER BY seq DESC LIMIT ?2)
      AND (ended_at < ?1 OR seq <= (SELECT seq FROM sessions ORDER BY seq DESC LIMIT 1 OFFSET ?3))
    ORDER BY seq
    LIMIT ?4
)
