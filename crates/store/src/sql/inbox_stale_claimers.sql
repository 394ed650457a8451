SELECT DISTINCT t.id AS turn
FROM inbox_messages AS m
JOIN turns AS t ON t.seq = m.turn
WHERE m.state = 'in_progress'
  AND (t.status = 'abandoned' OR (t.status = 'open' AND m.lease_until <= ?1))
