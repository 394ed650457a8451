SELECT id, status
FROM tool_calls
WHERE turn = (SELECT seq FROM turns WHERE id = ?1) AND status IN ('planned', 'started')
ORDER BY ordinal
