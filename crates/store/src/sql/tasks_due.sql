-- A lease or a run that lies in the future comes from a clock that went back.
SELECT *
FROM heartbeat_schedule
WHERE enabled = 1
  AND (lease_run IS NULL OR leased_until <= ?1 OR leased_at > ?1)
  AND CASE
      WHEN last_run_at IS NULL OR last_run_at > ?1 THEN TRUE
      WHEN next_run_at IS NOT NULL THEN next_run_at <= ?1
      ELSE ?1 - last_run_at >= interval_ms
  END
ORDER BY coalesce(next_run_at, last_run_at + interval_ms, 0), name
