SELECT * FROM memories
WHERE tier = ?1 AND valid_to IS NULL AND (?2 IS NULL OR kind = ?2)
ORDER BY seen_at DESC, id DESC
LIMIT ?3
