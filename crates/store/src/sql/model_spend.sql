-- ?1 since when.
SELECT
    model,
    count(*) AS answers,
    sum(prompt_tokens) AS prompt_tokens,
    sum(cached_tokens) AS cached_tokens,
    sum(completion_tokens) AS completion_tokens,
    sum(cost_microcents) AS cost
FROM inference_costs
WHERE at >= ?1 AND model <> 'approval'
GROUP BY model
ORDER BY cost DESC, model
