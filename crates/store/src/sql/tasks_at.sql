SELECT *
FROM heartbeat_schedule
WHERE enabled = 1 AND (next_run_at <= ?1 OR retry_at <= ?1 OR anchor_at >= ?2)
ORDER BY priority, next_run_at, name
