UPDATE payments
SET request = iif(request LIKE '%' || ?2, request, request || ?2), told_by = ?3
WHERE id = ?1 AND purpose <> 'top_up'
