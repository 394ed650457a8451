UPDATE tool_calls
SET status = ?2, result = ?3, result_label = ?4, result_source = ?5, duration_ms = ?6,
    result_sha256 = ?7, ended_at = ?8, exit_code = ?9
WHERE id = ?1
