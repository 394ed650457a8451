SELECT id, effect, started_at, intents
FROM tool_calls
WHERE turn = (SELECT seq FROM turns WHERE id = ?1) AND ordinal IS NOT NULL
ORDER BY ordinal
