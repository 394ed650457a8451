-- Texts of others with a word, from one turn on; what has no turn yet is the newest. A
-- result that repeats what its call said has not named it.
SELECT label, text FROM (
    SELECT m.label, m.body AS text, coalesce(m.turn, 9223372036854775807) AS seq
    FROM inbox_messages AS m
    WHERE m.label IN ('peer', 'web')
    UNION ALL
    SELECT i.label, i.body, i.turn
    FROM turn_inputs AS i
    WHERE i.label IN ('peer', 'web')
    UNION ALL
    SELECT c.result_label, c.result, c.turn
    FROM tool_calls AS c
    WHERE c.result_label IN ('peer', 'web') AND c.result IS NOT NULL AND instr(lower(c.arguments), ?1) = 0
    UNION ALL
    SELECT f.label, f.value, 9223372036854775807
    FROM semantic_memory AS f
    WHERE f.label IN ('peer', 'web')
)
WHERE seq >= ?2 AND instr(lower(text), ?1) > 0
