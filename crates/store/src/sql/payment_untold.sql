SELECT *
FROM payments
WHERE request = ?1 AND purpose <> 'top_up' AND state = 'settled' AND at > ?2
ORDER BY seq DESC
LIMIT 1
