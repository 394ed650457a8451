INSERT INTO policy_decisions (
    id, turn, call, tool, args_sha256, outcome, code, reason, risk,
    rules, rules_triggered, at, input_label, heard_label, authority, approval, latency_ms
)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, id, ?11, ?12, ?13, ?14, ?15, ?16, ?17
FROM rule_sets
WHERE names = ?10
