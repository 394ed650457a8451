-- ?1 the time 24 hours ago, ?2 what may be left: the oldest booking after which no more
-- than that was spent on answers.
SELECT min(at) AS at
FROM (
    SELECT at,
        coalesce(
            sum(-amount) OVER (ORDER BY at DESC RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP),
            0
        ) AS newer
    FROM ledger
    WHERE category = 'inference' AND at > ?1
)
WHERE newer <= ?2
