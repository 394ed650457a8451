-- ?1 the oldest time that is kept, ?2 newest rows of each task that are kept at any
-- age, ?3 rows that are kept at most, ?4 rows that are deleted at most.
DELETE FROM heartbeat_history
WHERE seq IN (
    SELECT seq
    FROM heartbeat_history AS old
    WHERE (at < ?1 OR seq <= (SELECT seq FROM heartbeat_history ORDER BY seq DESC LIMIT 1 OFFSET ?3))
      AND ?2 <= (SELECT count(*) FROM (
          SELECT 1 FROM heartbeat_history AS newer WHERE newer.task = old.task AND newer.seq > old.seq LIMIT ?2
      ))
    ORDER BY seq
    LIMIT ?4
)
