SELECT count(*) AS count
FROM heartbeat_history
WHERE task = ?1 AND woke = 1 AND at > ?2 AND at <= ?3
