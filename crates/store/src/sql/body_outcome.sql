SELECT id, status, result_sha256, result_label, result_source, duration_ms, exit_code, ended_at AS at
FROM tool_calls
WHERE id = ?1 AND result_sha256 IS NOT NULL
