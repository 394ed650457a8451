SELECT coalesce(sum(worth), 0) AS sum
FROM payments
WHERE rail = ?1 AND state IN ('proposed', 'approved', 'signed', 'submitted', 'unknown')
