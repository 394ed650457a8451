SELECT 1
FROM wake_events
WHERE session IS NULL AND cause = ?1 AND reason = ?2 AND label = ?3 AND source = ?4
