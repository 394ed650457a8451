SELECT t.*, c.model, c.prompt_tokens, c.cached_tokens, c.completion_tokens,
       c.cost_microcents, c.first_token_ms, c.total_ms
FROM turns AS t
LEFT JOIN inference_costs AS c ON c.turn = t.id
WHERE t.status = 'committed' AND t.seq >= ?1
ORDER BY t.seq DESC
LIMIT ?2
