SELECT c.id, turn, ordinal, tool, source, effect, args_sha256, intents, outcome, code, reason, risk,
       names, rules_triggered, decided_at AS at,
       input_label, heard_label, authority, approval, latency_ms
FROM tool_calls AS c
JOIN rule_sets AS r ON r.id = c.rules
WHERE c.id = ?1
