UPDATE memories
SET seen = seen + 1, seen_at = ?2,
    strength = CASE WHEN label IN ('creator', 'self') THEN ?3 ELSE strength END,
    expires_at = coalesce(?4, expires_at)
WHERE id = ?1
