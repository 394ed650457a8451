SELECT hash, wallet FROM api_keys WHERE is_strangers = 1 ORDER BY made_at
LIMIT max(0, (SELECT count(*) FROM api_keys WHERE is_strangers = 1) - ?1)
