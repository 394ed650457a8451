INSERT INTO tool_calls (
    id, turn, ordinal, tool, arguments, source, effect, status,
    result, result_label, result_source,
    args_sha256, intents, outcome, code, reason, risk, rules, rules_triggered,
    input_label, heard_label, authority, approval, latency_ms, decided_at
)
VALUES (?1, (SELECT seq FROM turns WHERE id = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
    (SELECT id FROM rule_sets WHERE names = ?18), ?19, ?20, ?21, ?22, ?23, ?24, ?25)
