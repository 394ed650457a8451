SELECT *
FROM approvals
WHERE state = 'waiting'
ORDER BY seq DESC
LIMIT ?1
