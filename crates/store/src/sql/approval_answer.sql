UPDATE approvals
SET state = ?2, answered_at = ?3
WHERE id = ?1 AND state = 'waiting'
