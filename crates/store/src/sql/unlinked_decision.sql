SELECT id AS id
FROM policy_decisions
WHERE NOT EXISTS (
    SELECT 1 FROM audit_chain WHERE kind = 'decision' AND subject_id = policy_decisions.id
)
LIMIT 1
