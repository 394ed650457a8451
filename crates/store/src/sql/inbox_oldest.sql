SELECT id, body, label, source, received_at, claims
FROM inbox_messages
WHERE state = 'received'
ORDER BY seq
LIMIT ?1
