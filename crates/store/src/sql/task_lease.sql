UPDATE heartbeat_schedule
SET lease_run = ?2, leased_at = ?3, leased_until = ?4, fence = fence + 1
WHERE name = ?1 AND enabled = 1
  AND (lease_run IS NULL OR leased_until <= ?3 OR leased_at > ?3)
RETURNING fence
