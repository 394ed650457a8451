UPDATE wake_events
SET at = CASE cause WHEN 'manual' THEN ?5 ELSE at END
WHERE session IS NULL AND cause = ?1 AND reason = ?2 AND label = ?3 AND source = ?4
