SELECT part, sum(count) AS count
FROM (
    SELECT cause AS part, count(*) AS count FROM wake_events GROUP BY 1
    UNION ALL
    SELECT part, count FROM metric_folds WHERE family = 'wake'
)
GROUP BY 1
ORDER BY 1
