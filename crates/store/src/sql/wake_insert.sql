INSERT INTO wake_events (cause, reason, label, source, at, session, consumed_at)
VALUES (?1, ?2, ?3, ?4, ?5, (SELECT seq FROM sessions WHERE id = ?6), ?7)
