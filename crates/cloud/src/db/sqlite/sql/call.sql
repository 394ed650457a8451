SELECT state, charged, prompt_tokens, cached_tokens, completion_tokens, metering
FROM holds
WHERE wallet = ?1 AND name = ?2
ORDER BY opened_at DESC, id DESC
LIMIT 1
