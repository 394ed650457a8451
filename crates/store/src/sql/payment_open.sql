SELECT *
FROM payments
WHERE request = ?1 AND state IN ('proposed', 'approved', 'signed', 'submitted', 'unknown')
