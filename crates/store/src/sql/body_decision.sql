SELECT d.id, turn, call, tool, args_sha256, outcome, code, reason, risk,
       names, rules_triggered, at,
       input_label, heard_label, authority, approval, latency_ms
FROM policy_decisions AS d
JOIN rule_sets AS r ON r.id = d.rules
WHERE d.id = ?1
