SELECT id
FROM turns
WHERE session = ?1 AND status IN ('open', 'judged')
ORDER BY seq
LIMIT 1
