SELECT payee
FROM spends
WHERE origin = ?1 AND state = 'settled'
ORDER BY seq
LIMIT 1
