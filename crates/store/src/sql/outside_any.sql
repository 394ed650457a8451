-- Whether anybody else has written anything.
SELECT 1 WHERE EXISTS (SELECT 1 FROM inbox_messages WHERE label IN ('peer', 'web'))
    OR EXISTS (SELECT 1 FROM turn_inputs WHERE label IN ('peer', 'web'))
    OR EXISTS (SELECT 1 FROM tool_calls WHERE result_label IN ('peer', 'web') AND result IS NOT NULL)
    OR EXISTS (SELECT 1 FROM memories WHERE label IN ('peer', 'web'))
