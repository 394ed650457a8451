INSERT INTO call_outcomes (call, status, result_sha256, label, source, duration_ms, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
