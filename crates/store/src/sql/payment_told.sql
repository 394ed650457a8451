UPDATE payments
SET request = request || ?2
WHERE id = ?1 AND purpose <> 'top_up' AND NOT request LIKE '%' || ?2
