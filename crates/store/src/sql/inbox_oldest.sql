SELECT id, body, label, source, received_at, claims, file
FROM inbox_messages
WHERE state = 'received' AND (?2 IS NULL OR label = ?2)
ORDER BY seq
LIMIT ?1
