-- Texts of others with a word, from one turn on; what has no turn yet is the newest. Results
-- come all, with what their call said: either may be packed.
SELECT label, text, said FROM (
    SELECT m.label, m.body AS text, coalesce(m.turn, 9223372036854775807) AS seq, NULL AS said
    FROM inbox_messages AS m
    WHERE m.label IN ('peer', 'web')
    UNION ALL
    SELECT i.label, i.body, i.turn, NULL
    FROM turn_inputs AS i
    WHERE i.label IN ('peer', 'web')
    UNION ALL
    SELECT c.result_label, c.result, c.turn, c.arguments
    FROM tool_calls AS c
    WHERE c.result_label IN ('peer', 'web') AND c.result IS NOT NULL
    UNION ALL
    SELECT f.label, f.body, 9223372036854775807, NULL
    FROM memories AS f
    WHERE f.label IN ('peer', 'web')
)
WHERE seq >= ?2 AND (said IS NOT NULL OR instr(lower(text), ?1) > 0)
