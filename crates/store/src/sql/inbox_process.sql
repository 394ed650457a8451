UPDATE inbox_messages
SET state = 'processed', lease_until = NULL, ended_at = ?2
WHERE turn = (SELECT seq FROM turns WHERE id = ?1) AND state = 'in_progress'
