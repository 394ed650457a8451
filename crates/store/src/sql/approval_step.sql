INSERT INTO approval_steps (id, approval, step, action_sha256, label, source, at)
SELECT ?1, ?2, ?3, action_sha256, ?4, ?5, ?6
FROM approvals
WHERE id = ?2
