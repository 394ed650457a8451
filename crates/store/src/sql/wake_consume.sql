UPDATE wake_events
SET session = (SELECT seq FROM sessions WHERE id = ?5), consumed_at = ?6
WHERE session IS NULL AND cause = ?1 AND reason = ?2 AND label = ?3 AND source = ?4
