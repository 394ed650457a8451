SELECT d.*, r.names AS rules_evaluated
FROM policy_decisions AS d
JOIN rule_sets AS r ON r.id = d.rules
LEFT JOIN tool_calls AS c ON c.id = d.call
WHERE d.turn = ?1
ORDER BY c.ordinal, d.id
