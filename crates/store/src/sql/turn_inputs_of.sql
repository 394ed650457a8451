SELECT coalesce(i.body, m.body) AS body,
       coalesce(i.label, m.label) AS label,
       coalesce(i.source, m.source) AS source,
       m.id AS message, m.file
FROM turn_inputs AS i
LEFT JOIN inbox_messages AS m ON m.seq = i.message
WHERE i.turn = (SELECT seq FROM turns WHERE id = ?1)
ORDER BY i.ordinal
