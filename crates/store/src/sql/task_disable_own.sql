UPDATE heartbeat_schedule SET enabled = 0 WHERE name = ?1 AND origin = 'agent'
