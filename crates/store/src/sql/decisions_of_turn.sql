SELECT d.*
FROM policy_decisions AS d
LEFT JOIN tool_calls AS c ON c.id = d.call
WHERE d.turn = ?1
ORDER BY c.ordinal, d.id
