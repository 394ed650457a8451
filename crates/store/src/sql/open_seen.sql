-- Messages that a committed turn has read and that a prompt shows, the newest ?1, oldest first.
SELECT id FROM (
    SELECT id, seq
    FROM inbox_messages
    WHERE label = 'creator' AND state = 'processed' AND answered_at IS NULL
    ORDER BY seq DESC
    LIMIT ?1
)
ORDER BY seq
