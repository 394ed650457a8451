SELECT *
FROM semantic_memory
WHERE ?1 IS NULL OR category = ?1
ORDER BY updated_at DESC, seq DESC
LIMIT ?2
