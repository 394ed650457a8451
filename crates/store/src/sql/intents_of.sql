SELECT i.id, i.call, i.body
FROM tool_calls AS c
JOIN intents AS i ON i.call = c.id
WHERE c.turn = ?1
ORDER BY c.ordinal, i.ordinal
