SELECT id, call, ordinal, kind, body, source, at
FROM intents
WHERE id = ?1
