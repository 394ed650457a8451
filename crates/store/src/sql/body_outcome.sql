SELECT call, status, result_sha256, label, source, duration_ms, at
FROM call_outcomes
WHERE call = ?1
