SELECT id, tool, arguments, status, result, result_label, result_source, duration_ms, exit_code
FROM tool_calls
WHERE turn = (SELECT seq FROM turns WHERE id = ?1) AND ordinal IS NOT NULL
ORDER BY ordinal
