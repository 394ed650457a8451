UPDATE inbox_messages
SET state = ?2, attempts = ?3, crashes = ?4, ended_at = ?5, lease_until = NULL, turn = NULL
WHERE id = ?1 AND state = 'in_progress'
