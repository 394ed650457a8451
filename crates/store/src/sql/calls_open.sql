SELECT id, status
FROM tool_calls
WHERE turn = ?1 AND status IN ('planned', 'started')
ORDER BY ordinal
