SELECT *
FROM payments
WHERE state IN ('proposed', 'approved', 'signed', 'submitted', 'unknown')
ORDER BY seq
