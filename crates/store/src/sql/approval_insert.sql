INSERT INTO approvals (id, kind, subject, summary, code, reason, state, label, source, at, expires_at)
VALUES (?1, 'payment', ?2, ?3, ?4, ?5, 'waiting', ?6, ?7, ?8, ?9)
