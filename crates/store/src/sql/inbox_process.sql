UPDATE inbox_messages
SET state = 'processed', lease_until = NULL, ended_at = ?2
WHERE turn = ?1 AND state = 'in_progress'
