-- A result that went with its turn is only known by its hash.
SELECT id, result, result_sha256
FROM tool_calls AS c
WHERE (result_sha256 IS NOT NULL OR status IN ('done', 'failed', 'unknown', 'not_started'))
    AND (result IS NOT NULL OR result_sha256 IS NULL OR EXISTS (SELECT 1 FROM turns WHERE seq = c.turn))
