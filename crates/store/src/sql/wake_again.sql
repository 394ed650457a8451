-- ?1 to ?4 what an event says, ?5 now. What the creator says again is news: it counts from now on,
-- and did not wait when the present sleep began. What repeats itself is none.
UPDATE wake_events
SET at = iif(cause = 'manual' OR label = 'creator', ?5, at),
    waited = iif(cause = 'manual' OR label = 'creator', 0, waited)
WHERE session IS NULL AND cause = ?1 AND reason = ?2 AND label = ?3 AND source = ?4
