-- ?7 is the time that the decision to run was based on: a schedule that has changed
-- since is decided about again. A lease that lies in the future comes from a clock
-- that went back.
UPDATE heartbeat_schedule
SET lease_run = ?2, leased_at = ?3, leased_until = ?4, fence = fence + 1,
    anchor_at = ?5, next_run_at = ?6, retry_at = NULL, attempt = ?8
WHERE name = ?1 AND enabled = 1 AND next_run_at = ?7
  AND (lease_run IS NULL OR leased_until <= ?3 OR leased_at > ?3)
RETURNING fence
