INSERT INTO memories (
    tier, kind, name, body, label, source, strength, sha256, turn, valid_from, seen_at, expires_at,
    seen, successes, failures
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14)
RETURNING id
