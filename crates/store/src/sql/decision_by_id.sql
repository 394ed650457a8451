SELECT d.*, r.names AS rules_evaluated
FROM policy_decisions AS d
JOIN rule_sets AS r ON r.id = d.rules
WHERE d.id = ?1 OR d.call = ?1
