-- A row of the past, or of the future of a clock that went back, is no longer there.
INSERT INTO heartbeat_dedup (key, task, at, expires_at)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (key) DO UPDATE
SET at = excluded.at, expires_at = excluded.expires_at
WHERE expires_at <= excluded.at OR at > excluded.at
