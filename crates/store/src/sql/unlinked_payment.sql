SELECT id AS id
FROM payment_steps
WHERE NOT EXISTS (
    SELECT 1 FROM audit_chain WHERE kind = 'payment' AND subject_id = payment_steps.id
)
LIMIT 1
