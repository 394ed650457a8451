-- ?1 the time at which they were open; without one, now. ?2 messages at most, the newest.
SELECT m.id, m.body, m.received_at, m.state, m.file, t.seq AS turn_seq
FROM inbox_messages AS m
LEFT JOIN turns AS t ON t.id = m.turn
WHERE m.label = 'creator' AND m.state <> 'failed'
  AND (m.answered_at IS NULL OR m.answered_at > ?1) AND (?1 IS NULL OR m.received_at <= ?1)
ORDER BY m.seq DESC
LIMIT ?2
