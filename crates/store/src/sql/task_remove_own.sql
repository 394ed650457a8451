DELETE FROM heartbeat_schedule
WHERE name = ?1 AND origin = 'agent' AND lease_run IS NULL
