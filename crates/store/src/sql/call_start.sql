UPDATE tool_calls
SET status = 'started', started_at = ?2
WHERE id = ?1 AND status = 'planned'
