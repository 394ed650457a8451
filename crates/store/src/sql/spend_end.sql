UPDATE spends
SET state = ?2, tx = ?3, reason = ?4, changed_at = ?5
WHERE id = ?1
