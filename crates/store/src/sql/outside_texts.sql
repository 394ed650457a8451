-- Texts of others with a word, from one turn on; what has no turn yet is the newest. A
-- result that repeats what its call said has not named it.
SELECT label, text FROM (
    SELECT m.label, m.body AS text, coalesce(t.seq, 9223372036854775807) AS seq
    FROM inbox_messages AS m LEFT JOIN turns AS t ON t.id = m.turn
    WHERE m.label IN ('peer', 'web')
    UNION ALL
    SELECT i.label, i.body, t.seq
    FROM turn_inputs AS i JOIN turns AS t ON t.id = i.turn
    WHERE i.label IN ('peer', 'web')
    UNION ALL
    SELECT c.result_label, c.result, t.seq
    FROM tool_calls AS c JOIN turns AS t ON t.id = c.turn
    WHERE c.result_label IN ('peer', 'web') AND c.result IS NOT NULL AND instr(lower(c.arguments), ?1) = 0
    UNION ALL
    SELECT f.label, f.value, 9223372036854775807
    FROM semantic_memory AS f
    WHERE f.label IN ('peer', 'web')
)
WHERE seq >= ?2 AND instr(lower(text), ?1) > 0
