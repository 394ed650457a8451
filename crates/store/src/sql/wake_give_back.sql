-- ?1 the session. A call of the creator that the creator interrupted is dropped with the rest.
INSERT INTO wake_events (cause, reason, label, source, at)
SELECT cause, reason, label, source, at
FROM wake_events AS told
WHERE session = (SELECT seq FROM sessions WHERE id = ?1)
  AND cause IN ('birth', 'heartbeat', 'manual')
  AND (SELECT turns FROM sessions WHERE id = ?1) = 0
  AND NOT (
    cause = 'manual' AND label = 'creator'
    AND (SELECT reason FROM sessions WHERE id = ?1) = 'interrupted'
  )
  AND NOT EXISTS (
    SELECT 1
    FROM wake_events AS waits
    WHERE waits.session IS NULL
      AND waits.cause = told.cause
      AND waits.reason = told.reason
      AND waits.label = told.label
      AND waits.source = told.source
  )
