SELECT m.*
FROM semantic_memory_words AS w
JOIN semantic_memory AS m ON m.seq = w.rowid
WHERE semantic_memory_words MATCH ?1 AND (?2 IS NULL OR m.category = ?2)
ORDER BY w.rank, m.updated_at DESC, m.seq DESC
LIMIT ?3
