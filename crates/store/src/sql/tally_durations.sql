-- Each duration by its bucket, with those of rows that were deleted.
WITH durations (family, ms) AS (
    SELECT 'turn', committed_at - opened_at FROM turns WHERE status = 'committed'
    UNION ALL
    SELECT 'model', total_ms FROM turns WHERE total_ms IS NOT NULL
    UNION ALL
    SELECT 'tool', duration_ms FROM tool_calls WHERE status IN ('done', 'failed')
    UNION ALL
    SELECT 'heartbeat', duration_ms FROM heartbeat_history
)
SELECT family, le_ms, sum(count) AS count, sum(sum_ms) AS sum_ms
FROM (
    SELECT family, (SELECT min(le_ms) FROM metric_bounds WHERE le_ms >= ms) AS le_ms, count(*) AS count,
        sum(max(ms, 0)) AS sum_ms
    FROM durations
    GROUP BY 1, 2
    UNION ALL
    SELECT family, le_ms, count, sum_ms FROM metric_folds WHERE part = ''
)
GROUP BY 1, 2
ORDER BY 1, 2
