UPDATE memories
SET valid_to = ?3
WHERE id = (
    SELECT id FROM memories
    WHERE tier = ?1 AND valid_to IS NULL AND (label NOT IN ('creator', 'self')) = ?2
    ORDER BY strength, seen_at, id
    LIMIT 1
)
