-- ?1 when. What the creator said, a turn has read, though its model may not have answered, and
-- nobody has answered yet.
UPDATE inbox_messages
SET answered_at = ?1, answered_by = 'creator',
    state = 'processed', ended_at = coalesce(ended_at, ?1)
WHERE label = 'creator' AND answered_at IS NULL AND claims > 0 AND state IN ('received', 'processed')
RETURNING id, body
