-- ?1 the oldest time that is kept, ?2 newest rows that are kept at any age,
-- ?3 rows that are kept at most, ?4 rows that are deleted at most.
DELETE FROM wake_events
WHERE seq IN (
    SELECT seq
    FROM wake_events AS old
    WHERE session IS NOT NULL
      AND seq NOT IN (SELECT seq FROM wake_events ORDER BY seq DESC LIMIT ?2)
      AND (consumed_at < ?1 OR seq <= (SELECT seq FROM wake_events ORDER BY seq DESC LIMIT 1 OFFSET ?3))
    ORDER BY seq
    LIMIT ?4
)
