INSERT INTO inference_costs (
    turn, model, prompt_tokens, cached_tokens, completion_tokens,
    cost_microcents, first_token_ms, total_ms, at
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
