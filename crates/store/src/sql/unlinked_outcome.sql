SELECT id
FROM tool_calls
WHERE result_sha256 IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM audit_chain WHERE kind = 'outcome' AND subject_id = tool_calls.id
)
LIMIT 1
