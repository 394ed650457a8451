UPDATE alerts
SET message = ?2, fired_at = ?3, times = ?4, cleared_at = ?5, state = iif(?5 IS NULL, 'active', 'cleared')
WHERE rule = ?1 AND state = 'active'
