SELECT coalesce(i.body, m.body) AS body,
       coalesce(i.label, m.label) AS label,
       coalesce(i.source, m.source) AS source,
       i.message, m.file
FROM turn_inputs AS i
LEFT JOIN inbox_messages AS m ON m.id = i.message
WHERE i.turn = ?1
ORDER BY i.ordinal
