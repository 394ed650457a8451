SELECT payee
FROM payments
WHERE origin = ?1 AND purpose = 'top_up' AND state = 'settled'
ORDER BY seq
LIMIT 1
