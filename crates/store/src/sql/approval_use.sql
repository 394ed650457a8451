UPDATE approvals
SET state = 'used', used_by = ?2
WHERE id = ?1 AND kind = 'call' AND state = 'approved'
