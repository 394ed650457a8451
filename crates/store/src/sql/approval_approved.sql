SELECT *
FROM approvals
WHERE state = 'approved' AND kind = 'call'
ORDER BY seq
LIMIT 1
