-- ?1 the time at which the window begins, ?2 what may be left: the oldest booking after which no more
-- than that was spent on answers.
SELECT min(at) AS at
FROM (
    SELECT at, sum(cost) OVER (ORDER BY at DESC) - cost AS newer
    FROM (
        SELECT at, sum(-amount) AS cost
        FROM ledger
        WHERE category = 'inference' AND at > ?1
        GROUP BY at
    )
)
WHERE newer <= ?2
