SELECT inference_costs.prompt_tokens
FROM turns JOIN inference_costs ON inference_costs.turn = turns.id
WHERE turns.committed_at IS NOT NULL
ORDER BY turns.seq DESC
LIMIT 1
