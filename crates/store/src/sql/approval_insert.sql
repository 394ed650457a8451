INSERT INTO approvals (
    id, kind, subject, tool, arguments, action_sha256, summary, code, reason, state,
    label, source, at, expires_at
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'waiting', ?10, ?11, ?12, ?13)
