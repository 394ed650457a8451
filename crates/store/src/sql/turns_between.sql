-- ?1 the first turn that is wanted, ?2 the one behind the last, ?3 turns at most.
SELECT id, seq, (SELECT id FROM sessions WHERE seq = session) AS session, status, thought, model, prompt_tokens, cached_tokens, completion_tokens,
       cost_microcents, estimated, first_token_ms, total_ms, unknown_end, opened_at, committed_at
FROM turns
WHERE status = 'committed' AND seq >= ?1 AND seq < ?2
ORDER BY seq DESC
LIMIT ?3
