SELECT id, approval, step, action_sha256, label, source, at
FROM approval_steps
WHERE id = ?1
