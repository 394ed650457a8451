SELECT id
FROM approvals
WHERE state IN ('waiting', 'approved') AND kind = 'call' AND action_sha256 = ?1
