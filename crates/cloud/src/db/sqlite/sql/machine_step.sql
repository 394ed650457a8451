-- Only a passed health check, ?5, makes it one that is charged, and never for what was before;
-- nor is more than the minute ?6 paid ahead, whatever the clock was set to.
UPDATE machines
SET state = ?2, since = ?3, reason = ?4,
    healthy_at = iif(?5, coalesce(healthy_at, ?3), healthy_at),
    paid_until = iif(?5, max(min(coalesce(paid_until, ?3), ?3 + ?6), ?3), paid_until),
    -- What came to nothing may be asked for once more.
    request_name = iif(?2 = 'deleted' AND healthy_at IS NULL, NULL, request_name)
WHERE id = ?1
