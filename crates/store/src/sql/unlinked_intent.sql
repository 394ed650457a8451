SELECT id AS id
FROM intents
WHERE NOT EXISTS (
    SELECT 1 FROM audit_chain WHERE kind = 'intent' AND subject_id = intents.id
)
LIMIT 1
