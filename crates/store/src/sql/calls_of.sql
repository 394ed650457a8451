SELECT id, tool, arguments, status, result, result_label, result_source, duration_ms
FROM tool_calls
WHERE turn = ?1
ORDER BY ordinal
