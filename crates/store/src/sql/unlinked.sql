SELECT 'decision' AS kind, id FROM tool_calls WHERE outcome IS NOT NULL AND decided_link IS NULL
UNION ALL
SELECT 'outcome', id FROM tool_calls WHERE result_sha256 IS NOT NULL AND ended_link IS NULL
UNION ALL
SELECT 'payment', id FROM payment_steps WHERE link IS NULL
UNION ALL
SELECT 'approval', id FROM approval_steps WHERE link IS NULL
LIMIT 1
