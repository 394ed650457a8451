UPDATE wake_events
SET session = (SELECT seq FROM sessions WHERE id = ?1), consumed_at = ?2
WHERE session IS NULL
  AND cause = 'inbox'
  AND NOT EXISTS (SELECT 1 FROM inbox_messages WHERE state = 'received')
