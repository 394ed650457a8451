-- ?1 the oldest time that is kept, ?2 newest rows that are kept at any age,
-- ?3 rows that are kept at most, ?4 rows that are deleted at most.
DELETE FROM memories
WHERE id IN (
    SELECT id
    FROM memories
    WHERE valid_to IS NOT NULL
      AND id NOT IN (SELECT id FROM memories WHERE valid_to IS NOT NULL ORDER BY valid_to DESC LIMIT ?2)
      AND (valid_to < ?1 OR valid_to <= (SELECT valid_to FROM memories WHERE valid_to IS NOT NULL ORDER BY valid_to DESC LIMIT 1 OFFSET ?3))
    ORDER BY valid_to
    LIMIT ?4
)
