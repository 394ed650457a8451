SELECT 1
FROM tool_calls
WHERE id = ?1 AND result = ?2 AND result_label = ?3 AND result_source = ?4
