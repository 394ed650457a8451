SELECT coalesce(sum(worth) FILTER (WHERE at > ?2), 0) AS hour,
    coalesce(sum(worth) FILTER (WHERE at > ?3), 0) AS day,
    max(at) AS last,
    count(*) FILTER (WHERE turn = ?4) AS in_turn
FROM payments
WHERE purpose = ?1 AND state NOT IN ('failed', 'expired')
