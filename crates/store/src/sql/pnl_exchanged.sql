-- ?1 the oldest time that counts.
SELECT coalesce(sum(units), 0) AS paid, coalesce(sum(worth), 0) AS got
FROM payments
WHERE purpose = 'top_up' AND rail = 'usdc' AND state = 'settled' AND changed_at >= ?1
