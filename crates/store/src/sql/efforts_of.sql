SELECT id, effect, started_at
FROM tool_calls
WHERE turn = ?1
ORDER BY ordinal
