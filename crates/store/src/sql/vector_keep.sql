-- A vector of a part of a memory that still holds.
INSERT OR REPLACE INTO memory_vectors (memory, part, outside, vector)
SELECT id, ?2, label NOT IN ('creator', 'self'), ?3
FROM memories
WHERE id = ?1 AND valid_to IS NULL
RETURNING outside
