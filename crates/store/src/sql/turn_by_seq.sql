SELECT id, seq, (SELECT id FROM sessions WHERE seq = session) AS session, status, thought, model, prompt_tokens, cached_tokens, completion_tokens,
       cost_microcents, estimated, first_token_ms, total_ms, unknown_end, opened_at, committed_at
FROM turns
WHERE seq = ?1
