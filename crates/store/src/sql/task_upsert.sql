INSERT INTO heartbeat_schedule (name, interval_ms, enabled, timeout_ms, max_retries)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE
SET interval_ms = excluded.interval_ms, enabled = excluded.enabled,
    timeout_ms = excluded.timeout_ms, max_retries = excluded.max_retries
