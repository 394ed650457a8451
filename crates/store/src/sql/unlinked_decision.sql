SELECT id
FROM tool_calls
WHERE outcome IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM audit_chain WHERE kind = 'decision' AND subject_id = tool_calls.id
)
LIMIT 1
