-- A vector of a memory that still holds.
INSERT OR REPLACE INTO memory_vectors (memory, outside, vector)
SELECT id, label NOT IN ('creator', 'self'), ?2
FROM memories
WHERE id = ?1 AND valid_to IS NULL
RETURNING outside
