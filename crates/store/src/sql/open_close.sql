-- ?1 the message, ?2 who closes it, ?3 when. One that waits is not read any more.
UPDATE inbox_messages
SET answered_at = ?3, answered_by = ?2,
    state = iif(state = 'received', 'processed', state),
    ended_at = iif(state = 'received', ?3, ended_at)
WHERE id = ?1 AND label = 'creator' AND answered_at IS NULL AND state <> 'failed'
