-- ?1 the oldest time that counts.
SELECT coalesce(sum(amount) FILTER (WHERE category = 'revenue'), 0) AS revenue,
    coalesce(sum(-amount) FILTER (WHERE category <> 'revenue'), 0) AS cost
FROM ledger
WHERE at >= ?1 AND category <> 'funding'
