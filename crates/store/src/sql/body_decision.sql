SELECT id, turn, call, tool, args_sha256, outcome, code, reason, label, source,
       risk, rules_evaluated, rules_triggered, at
FROM policy_decisions
WHERE id = ?1
