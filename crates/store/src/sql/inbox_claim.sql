UPDATE inbox_messages
SET state = 'in_progress', turn = ?2, lease_until = ?3, claims = claims + 1
WHERE id = ?1 AND state = 'received'
