SELECT *
FROM payments
WHERE purpose <> 'top_up' AND state = 'settled' AND at > ?2 AND (request = ?1
    OR request = ?1 || ' ' || id
        AND EXISTS (SELECT 1 FROM tool_calls WHERE id = told_by AND status = 'unknown'))
ORDER BY seq DESC
LIMIT 1
