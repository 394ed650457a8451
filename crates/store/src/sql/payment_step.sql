UPDATE payments
SET state = ?2, tx = coalesce(?3, tx), reason = ?4, changed_at = ?5
WHERE id = ?1
