-- ?1 the oldest time that is kept, ?2 newest rows that are kept at any age,
-- ?3 rows that are kept at most, ?4 rows that are deleted at most.
DELETE FROM inbox_messages
WHERE seq IN (
    SELECT seq
    FROM inbox_messages AS old
    WHERE state IN ('processed', 'failed')
      AND NOT EXISTS (SELECT 1 FROM turn_inputs WHERE message = old.seq)
      AND (label <> 'creator' OR state = 'failed' OR answered_at IS NOT NULL
           OR seq <= (SELECT seq FROM inbox_messages ORDER BY seq DESC LIMIT 1 OFFSET ?3))
      AND seq NOT IN (SELECT seq FROM inbox_messages ORDER BY seq DESC LIMIT ?2)
      AND (ended_at < ?1 OR seq <= (SELECT seq FROM inbox_messages ORDER BY seq DESC LIMIT 1 OFFSET ?3))
    ORDER BY seq
    LIMIT ?4
)
