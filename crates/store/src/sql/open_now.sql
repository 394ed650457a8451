-- ?1 messages at most, the newest.
SELECT id, body, received_at, state, file, turn
FROM inbox_messages
WHERE label = 'creator' AND answered_at IS NULL AND state <> 'failed'
ORDER BY seq DESC
LIMIT ?1
