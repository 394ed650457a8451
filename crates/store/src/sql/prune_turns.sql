-- ?1 the oldest time that is kept, ?2 newest rows that are kept at any age,
-- ?3 rows that are kept at most, ?4 rows that are deleted at most.
DELETE FROM turns
WHERE seq IN (
    SELECT seq
    FROM turns AS old
    WHERE status IN ('committed', 'abandoned') AND ingest <> 'owed'
      AND seq NOT IN (SELECT seq FROM turns ORDER BY seq DESC LIMIT ?2)
      AND (opened_at < ?1 OR seq <= (SELECT seq FROM turns ORDER BY seq DESC LIMIT 1 OFFSET ?3))
    ORDER BY seq
    LIMIT ?4
)
