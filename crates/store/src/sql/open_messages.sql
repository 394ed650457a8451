-- ?1 the time at which they were open, ?2 messages at most, the newest.
SELECT id, body, received_at, state, file, turn
FROM inbox_messages
WHERE label = 'creator' AND state <> 'failed'
  AND (answered_at IS NULL OR answered_at > ?1) AND received_at <= ?1
ORDER BY seq DESC
LIMIT ?2
