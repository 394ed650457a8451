-- ?1 the first turn that is wanted, ?2 the one behind the last, ?3 turns at most.
SELECT t.*, c.model, c.prompt_tokens, c.cached_tokens, c.completion_tokens,
       c.cost_microcents, c.first_token_ms, c.total_ms
FROM turns AS t
LEFT JOIN inference_costs AS c ON c.turn = t.id
WHERE t.status = 'committed' AND t.seq >= ?1 AND t.seq < ?2
ORDER BY t.seq DESC
LIMIT ?3
