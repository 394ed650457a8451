SELECT min(min(next_run_at, coalesce(retry_at, next_run_at))) AS next
FROM heartbeat_schedule
WHERE enabled = 1 AND min(next_run_at, coalesce(retry_at, next_run_at)) > ?1
