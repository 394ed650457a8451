SELECT id, call, ordinal, kind, body, label, source, at
FROM intents
WHERE id = ?1
