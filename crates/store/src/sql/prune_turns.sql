-- ?1 the oldest time that is kept, ?2 newest rows that are kept at any age,
-- ?3 rows that are kept at most, ?4 rows that are deleted at most. No more than the oldest rows are
-- looked at, however many there are, and numbers follow one another.
DELETE FROM turns
WHERE seq IN (
    SELECT seq
    FROM (SELECT seq, status, ingest, opened_at FROM turns ORDER BY seq LIMIT ?4)
    WHERE status IN ('committed', 'abandoned') AND ingest <> 'owed'
      AND seq <= (SELECT max(seq) - ?2 FROM turns)
      AND (opened_at < ?1 OR seq <= (SELECT max(seq) - ?3 FROM turns))
)
