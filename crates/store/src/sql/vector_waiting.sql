-- Memories after this one that hold and get a vector, oldest first.
SELECT * FROM memories
WHERE id > ?1 AND valid_to IS NULL AND tier <> ?2
ORDER BY id
LIMIT ?3
