INSERT INTO heartbeat_history (run, task, result, note, duration_ms, at, woke)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
