-- Calls by tool and how they ended. One that never came before the policy may name any
-- tool at all, and counts for none.
SELECT part, sum(count) AS count
FROM (
    SELECT iif(status IN ('invalid', 'skipped'), '', tool) || ' ' || status AS part, count(*) AS count
    FROM tool_calls
    WHERE status NOT IN ('planned', 'started')
    GROUP BY 1
    UNION ALL
    SELECT part, count FROM metric_folds WHERE family = 'call'
)
GROUP BY 1
ORDER BY 1
