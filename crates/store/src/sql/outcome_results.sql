SELECT c.id, c.result, o.result_sha256
FROM tool_calls AS c
LEFT JOIN call_outcomes AS o ON o.call = c.id AND o.status = c.status
WHERE o.call IS NOT NULL OR c.status IN ('done', 'failed', 'unknown', 'not_started')
