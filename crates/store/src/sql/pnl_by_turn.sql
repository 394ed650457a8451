-- ?1 the oldest time that counts, ?2 lines at most.
SELECT CAST(turn AS TEXT) AS name, coalesce(sum(amount) FILTER (WHERE category = 'revenue'), 0) AS revenue,
    coalesce(sum(-amount) FILTER (WHERE category <> 'revenue'), 0) AS cost
FROM ledger
WHERE ledger.at >= ?1 AND category <> 'funding'
GROUP BY 1
ORDER BY max(ledger.at) DESC, max(ledger.seq) DESC
LIMIT ?2
