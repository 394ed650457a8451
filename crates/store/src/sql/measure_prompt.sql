SELECT prompt_tokens
FROM turns
WHERE committed_at IS NOT NULL
ORDER BY seq DESC
LIMIT 1
