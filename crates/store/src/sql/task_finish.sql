UPDATE heartbeat_schedule
SET last_run_at = ?2, retry_at = ?3, last_result = ?4, last_note = ?5,
    runs = runs + 1, failures = failures + ?6, failing = ?7,
    lease_run = NULL, leased_at = NULL, leased_until = NULL
WHERE name = ?1
