INSERT INTO approval_steps (id, approval, step, action_sha256, label, source, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
