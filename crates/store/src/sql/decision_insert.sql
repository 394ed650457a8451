INSERT INTO policy_decisions (
    id, turn, call, tool, args_sha256, outcome, code, reason, risk,
    rules_evaluated, rules_triggered, at
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
