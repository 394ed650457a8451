SELECT id, status
FROM turns
WHERE status IN ('open', 'judged')
ORDER BY seq
