SELECT id
FROM turns
WHERE session = (SELECT seq FROM sessions WHERE id = ?1) AND status IN ('open', 'judged')
ORDER BY seq
LIMIT 1
