SELECT id AS id
FROM approval_steps
WHERE NOT EXISTS (
    SELECT 1 FROM audit_chain WHERE kind = 'approval' AND subject_id = approval_steps.id
)
LIMIT 1
