SELECT d.*
FROM policy_decisions AS d
JOIN tool_calls AS c ON c.id = d.id
WHERE d.turn = (SELECT seq FROM turns WHERE id = ?1)
ORDER BY c.ordinal, c.seq
