SELECT coalesce(sum(worth) FILTER (WHERE counted_at > window - ?2), 0) AS hour,
    coalesce(sum(worth) FILTER (WHERE counted_at > window - ?3), 0) AS day,
    min(max(window - counted_at, 0)) AS since_last,
    count(*) FILTER (WHERE turn = ?4) AS in_turn
FROM payments, window_time
WHERE purpose = ?1 AND state NOT IN ('failed', 'expired')
