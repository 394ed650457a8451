SELECT id, attempts, crashes
FROM inbox_messages
WHERE turn = ?1 AND state = 'in_progress'
ORDER BY seq
