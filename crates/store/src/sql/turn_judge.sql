UPDATE turns
SET status = 'judged', thought = ?2, model = ?3, judged_at = ?4, voice = ?5,
    prompt_tokens = ?6, cached_tokens = ?7, completion_tokens = ?8,
    cost_microcents = ?9, first_token_ms = ?10, total_ms = ?11, estimated = ?12,
    unknown_end = ?13
WHERE id = ?1
