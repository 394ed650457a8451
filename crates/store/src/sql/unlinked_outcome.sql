SELECT call AS id
FROM call_outcomes
WHERE NOT EXISTS (
    SELECT 1 FROM audit_chain WHERE kind = 'outcome' AND subject_id = call_outcomes.call
)
LIMIT 1
