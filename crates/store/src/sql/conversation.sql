-- ?1 an id, or nothing for all, ?2 rows at most.
SELECT * FROM (
    SELECT seq, id, body, label, source, received_at AS at, NULL AS reply_to, state, answered_by, file, 0 AS side
    FROM inbox_messages
    WHERE label = 'creator' AND (?1 IS NULL OR id = ?1)
    ORDER BY seq DESC
    LIMIT ?2
)
UNION ALL
SELECT * FROM (
    SELECT seq, id, body, label, source, at, reply_to, NULL, NULL, NULL, 1
    FROM outbox_messages
    WHERE ?1 IS NULL OR id = ?1
    ORDER BY seq DESC
    LIMIT ?2
)
ORDER BY at DESC, side DESC, seq DESC
LIMIT ?2
