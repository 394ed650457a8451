-- What the automaton set itself stays, unless the creator's file says otherwise. A
-- schedule that changes counts from now; one that does not goes on where it was.
INSERT INTO heartbeat_schedule (name, task, cron, zone, interval_ms, enabled, origin, priority, tier_minimum, timeout_ms,
    max_retries, anchor_at, next_run_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (name) DO UPDATE
SET task = excluded.task, enabled = excluded.enabled, origin = excluded.origin, priority = excluded.priority,
    tier_minimum = excluded.tier_minimum, timeout_ms = excluded.timeout_ms, max_retries = excluded.max_retries,
    cron = excluded.cron, zone = excluded.zone, interval_ms = excluded.interval_ms,
    anchor_at = iif(cron IS excluded.cron AND zone IS excluded.zone AND interval_ms IS excluded.interval_ms,
        anchor_at, excluded.anchor_at),
    next_run_at = iif(cron IS excluded.cron AND zone IS excluded.zone AND interval_ms IS excluded.interval_ms,
        next_run_at, excluded.next_run_at)
WHERE excluded.origin <> 'default' OR origin <> 'agent'
