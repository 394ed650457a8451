-- ?1 the oldest time that counts, ?2 lines at most. What is booked of a machine names it as the
-- source, and what is booked of a sale the port as well.
SELECT CASE WHEN category = 'machine' OR key LIKE 'revenue:sale:%' THEN source END AS name,
    coalesce(sum(amount) FILTER (WHERE category = 'revenue'), 0) AS revenue,
    coalesce(sum(-amount) FILTER (WHERE category <> 'revenue'), 0) AS cost
FROM ledger
WHERE ledger.at >= ?1 AND category <> 'funding'
GROUP BY 1
ORDER BY max(ledger.at) DESC, max(ledger.seq) DESC
LIMIT ?2
