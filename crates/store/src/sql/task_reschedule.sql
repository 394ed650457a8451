UPDATE heartbeat_schedule
SET anchor_at = ?2, next_run_at = ?3, retry_at = iif(retry_at IS NULL, NULL, ?4)
WHERE name = ?1
