SELECT id, attempts, crashes
FROM inbox_messages
WHERE turn = (SELECT seq FROM turns WHERE id = ?1) AND state = 'in_progress'
ORDER BY seq
