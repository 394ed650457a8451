UPDATE sessions
SET ended_at = ?2, reason = ?3, note = ?4
WHERE id = ?1
